/* Prints its arguments, one a line, and exits with the number of them. */
#include <stdio.h>

int main(int argc, char **argv)
{
        for (int i = 1; i < argc; i++)
                printf("%s\n", argv[i]);
        return argc - 1;
}
