from knowngood.app.main import main

main()
