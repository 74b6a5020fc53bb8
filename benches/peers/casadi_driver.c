/* Runs a step printed by CasADi: `driver STEPS REPETITIONS FILE y0 y1 y2 y3`; with -DN=n, n values.
 *
 * What enters: the step y -> y_next, linked in; or, with -DPER_STAGE=h, the rate y -> yd, of which RK4 is made here.
 * What leaves: on standard output wall and processor seconds of each repetition, a line each; in FILE the states of a
 * run of its own, start included, as doubles.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef N
#define N 4
#endif
int printed(const double **arg, double **res, long long *iw, double *w, int mem);
int printed_work(long long *sz_arg, long long *sz_res, long long *sz_iw, long long *sz_w);

static long long *iw;
static double *w;

static void call(const double *x, double *y) {
    const double *arg[] = {x};
    double *res[] = {y};
    printed(arg, res, iw, w, 0);
}

static void step(double *y) {
#ifdef PER_STAGE
    const double h = PER_STAGE;
    double k1[N], k2[N], k3[N], k4[N], z[N];
    call(y, k1);
    for (int i = 0; i < N; i++) z[i] = y[i] + h / 2 * k1[i];
    call(z, k2);
    for (int i = 0; i < N; i++) z[i] = y[i] + h / 2 * k2[i];
    call(z, k3);
    for (int i = 0; i < N; i++) z[i] = y[i] + h * k3[i];
    call(z, k4);
    for (int i = 0; i < N; i++) y[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
#else
    double next[N];
    call(y, next);
    memcpy(y, next, sizeof next);
#endif
}

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int count, char **words) {
    if (count != 4 + N) return 2;
    const int steps = atoi(words[1]), repetitions = atoi(words[2]);
    double start[N], y[N];
    for (int i = 0; i < N; i++) start[i] = atof(words[4 + i]);
    long long sizes[4];
    printed_work(&sizes[0], &sizes[1], &sizes[2], &sizes[3]);
    iw = calloc(sizes[2] + 1, sizeof *iw);
    w = calloc(sizes[3] + 1, sizeof *w);
    for (int r = 0; r < repetitions; r++) {
        memcpy(y, start, sizeof y);
        const double wall = now(CLOCK_MONOTONIC), processor = now(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < steps; i++) step(y);
        printf("%.9g %.9g\n", now(CLOCK_MONOTONIC) - wall, now(CLOCK_THREAD_CPUTIME_ID) - processor);
    }
    FILE *states = fopen(words[3], "wb");
    if (!states) return 1;
    memcpy(y, start, sizeof y);
    fwrite(y, sizeof y, 1, states);
    for (int i = 0; i < steps; i++) {
        step(y);
        fwrite(y, sizeof y, 1, states);
    }
    return fclose(states) ? 1 : 0;
}
