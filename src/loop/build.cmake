# The loops drive engines, and engines stand on the layers beside the loops in the same library.
target_link_libraries(spancl_common PUBLIC spancl_engine)
