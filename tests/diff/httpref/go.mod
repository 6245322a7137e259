module httpref

go 1.24
