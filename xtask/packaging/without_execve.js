// Makes of Node one that cannot become another program, as versions before 22.15 are.
process.execve = undefined;
