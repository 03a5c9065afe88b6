/* JSON on standard output. */
#ifndef SPANCL_CLI_JSON_OUTPUT_H
#define SPANCL_CLI_JSON_OUTPUT_H

/* Print a string. A byte that is not of a printable character in UTF-8 is escaped. */
void json_output_text(const char *text);

/* Print a member of an object, whose value is a string. `before`: '{' in front of the first, else ','. */
void json_output_member(char before, const char *name, const char *text);

#endif
