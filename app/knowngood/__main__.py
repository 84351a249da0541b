from knowngood.main import main

main()
