
/*
 * The seed of the check's random tests: each makes its own of it and of its
 * name (ring/support.c, unit/support/seed.lua, seeds.py), so that one change
 * finds what the next one finds. SEED of the environment takes its place in
 * all of them.
 */

#define TEST_SEED  20261128
