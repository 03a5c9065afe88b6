# Write the functions of OpenCL that the OBJECTS define to the file of definitions OUT.
string(REPLACE " " ";" objects "${OBJECTS}")
execute_process(COMMAND ${NM} --defined-only --extern-only ${objects} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " T (cl[A-Z][A-Za-z0-9]*|spancl_icd_version)" names "${text}")
list(TRANSFORM names REPLACE "^ T " "        ")
list(SORT names)
list(JOIN names "\n" lines)
file(WRITE ${OUT} "EXPORTS\n${lines}\n")
