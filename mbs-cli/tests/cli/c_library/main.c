/* A tenth of a second of the cart-pole, and its gradient: what the test compares with the command. */
#include "cart_pole.h"

#include <stdio.h>

static cart_pole_simulation simulation;
static cart_pole_memory memory;

int main(void) {
    cart_pole_parameters parameters;
    cart_pole_coordinates z;
    cart_pole_velocities v;
    cart_pole_gradient gradient;
    const cart_pole_inputs inputs = {.push = 0.0};
    double time;
    /* Nothing works before it is started, nor with null. */
    if (cart_pole_step(&simulation, &inputs) != CART_POLE_NOT_STARTED || cart_pole_init(NULL, NULL) != CART_POLE_NULL) {
        return 1;
    }
    cart_pole_defaults(&parameters);
    parameters.cart_mass = -1.0;
    if (cart_pole_init(&simulation, &parameters) != CART_POLE_PARAMETER) {
        return 2;
    }
    cart_pole_defaults(&parameters);
    if (cart_pole_init(&simulation, &parameters) != CART_POLE_OK) {
        return 3;
    }
    for (int step = 0; step < 100; step++) {
        if (cart_pole_step(&simulation, &inputs) != CART_POLE_OK) {
            return 4;
        }
    }
    if (cart_pole_time(&simulation, &time) || cart_pole_coordinates_of(&simulation, &z)
        || cart_pole_velocities_of(&simulation, &v)) {
        return 5;
    }
    if (cart_pole_gradient_until(&parameters, time, &memory, &gradient) != CART_POLE_OK) {
        return 6;
    }
    if (cart_pole_coordinate_name(2) != NULL) {
        return 7;
    }
    printf("%s %.17g\n%s %.17g\n", cart_pole_coordinate_name(0), z.rail, cart_pole_coordinate_name(1), z.pivot);
    printf("%.17g\n%.17g\n", v.rail, v.pivot);
    printf("%.17g\n%.17g\n%.17g\n", gradient.lean.value, gradient.lean.by.half, gradient.drift.by.push);
    return 0;
}
