/* The names of files of libraries, as the system has them. */
#ifndef SPANCL_OS_WINDOWS_PROCESS_LIBRARY_NAME_H
#define SPANCL_OS_WINDOWS_PROCESS_LIBRARY_NAME_H

#define LIBRARY_NAME(name) name ".dll" /* a module of this project */
#define LIBRARY_CLIENT     "spancl.dll"
#define LIBRARY_CLIENT_ANY "spancl."    /* the client's names begin with it */
#define LIBRARY_LOADER     "OpenCL.dll" /* OpenCL's ICD loader */
#define LIBRARY_SEPARATOR  ";"          /* between paths in variables */

#endif
