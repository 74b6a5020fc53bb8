/* Two seconds of the bouncing ball, and its gradient: what the test compares with the command. */
#include "bouncing_ball.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bouncing_ball_simulation simulation;
static bouncing_ball_memory memory;

/* The shortest form that reads as the same number. */
static void print(const char *name, double x) {
    char text[64];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) {
            break;
        }
    }
    printf("%s %s\n", name, text);
}

int main(void) {
    bouncing_ball_parameters parameters;
    bouncing_ball_coordinates z;
    bouncing_ball_happened happened;
    bouncing_ball_gradient gradient;
    int32_t stopped;
    double time = 0.0;
    if (bouncing_ball_happened_of(&simulation, &happened) != BOUNCING_BALL_NOT_STARTED) {
        return 1;
    }
    bouncing_ball_defaults(&parameters);
    if (bouncing_ball_init(&simulation, &parameters) != BOUNCING_BALL_OK) {
        return 2;
    }
    while (time < 2.0) {
        if (bouncing_ball_step(&simulation) != BOUNCING_BALL_OK || bouncing_ball_time(&simulation, &time)
            || bouncing_ball_happened_of(&simulation, &happened)) {
            return 3;
        }
        for (size_t i = 0; i < happened.count; i++) {
            if (happened.events[i].event != BOUNCING_BALL_EVENT_bounce || happened.events[i].t > time) {
                return 4;
            }
            print(bouncing_ball_event_name((size_t)happened.events[i].event), happened.events[i].t);
        }
    }
    if (bouncing_ball_stopped(&simulation, &stopped) || stopped || bouncing_ball_stopped(&simulation, NULL) != BOUNCING_BALL_NULL) {
        return 5;
    }
    if (bouncing_ball_coordinates_of(&simulation, &z)
        || bouncing_ball_gradient_until(&parameters, 2.0, &memory, &gradient)) {
        return 6;
    }
    print("height", z.fall);
    print("by e", gradient.height.by.e);
    /* A ball that comes to rest bounces ever faster: the event is refused by name, and a later step still is. */
    parameters.e = 0.1;
    if (bouncing_ball_init(&simulation, &parameters) != BOUNCING_BALL_OK) {
        return 7;
    }
    for (int step = 0; step < 1000; step++) {
        int32_t code = bouncing_ball_step(&simulation);
        if (code != BOUNCING_BALL_OK) {
            return code == BOUNCING_BALL_EVENT ? 0 : 8;
        }
    }
    return 9;
}
