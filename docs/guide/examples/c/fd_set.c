/* What a set of descriptors for select(2) is: a bit for each number, 64 to a word.
 *
 *   cc fd_set.c && ./a.out
 *
 * Descriptors 3, 7, 15 and 65 are put into a set; the words are printed with the lowest bit first. */
#include <stdio.h>
#include <string.h>
#include <sys/select.h>

int main(void) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(3, &set);
  FD_SET(7, &set);
  FD_SET(15, &set);
  FD_SET(65, &set);

  unsigned long words[sizeof set / sizeof(unsigned long)];
  memcpy(words, &set, sizeof set);
  size_t bits = 8 * sizeof *words;
  for (size_t word = 0; word < 2; word++) {
    printf("word %zu: ", word);
    for (size_t bit = 0; bit < 16; bit++)
      putchar(words[word] >> bit & 1 ? '1' : '0');
    printf("…\n");
  }
  printf("%zu words of %zu bits hold descriptors below %d\n", sizeof words / sizeof *words, bits,
         FD_SETSIZE);
  return 0;
}
