from knowngood.app.entry import main

main()
