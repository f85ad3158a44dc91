/* How many times a second two short paths through the kernel are taken: opening and closing a file, and a byte
 * through a pipe. A fixed number of rounds, so that a machine that counts instructions gives the same figure again.
 *
 *   paths ROUNDS [REPEATS]     prints the median of REPEATS as "open_close: N" and "pipe: N"
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int ends[2];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void open_close(void)
{
	int file = open("/tmp/paths", O_RDONLY);

	if (file < 0 || close(file))
		die("/tmp/paths");
}

static void through_a_pipe(void)
{
	char byte = 'x';

	if (write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
		die("pipe");
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static int smaller(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const char *name, void (*path)(void), long rounds, int repeats)
{
	double rates[64];

	for (int repeat = -1; repeat < repeats; repeat++) { /* the first warms up */
		double began = now();

		for (long round = 0; round < rounds; round++)
			path();
		if (repeat >= 0)
			rates[repeat] = rounds / (now() - began);
	}
	qsort(rates, repeats, sizeof(*rates), smaller);
	printf("%s: %.2f\n", name, (rates[(repeats - 1) / 2] + rates[repeats / 2]) / 2);
}

int main(int count, char **words)
{
	long rounds = count > 1 ? atol(words[1]) : 0;
	int repeats = count > 2 ? atoi(words[2]) : 1, file = open("/tmp/paths", O_CREAT | O_RDONLY, 0600);

	if (rounds < 1 || repeats < 1 || repeats > 64) {
		fprintf(stderr, "usage: paths ROUNDS [REPEATS, at most 64]\n");
		return 2;
	}
	if (file < 0 || pipe(ends))
		die("paths");
	measure("open_close", open_close, rounds, repeats);
	measure("pipe", through_a_pipe, rounds, repeats);
	return 0;
}
