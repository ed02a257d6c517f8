import { setFlagsFromString } from 'node:v8';

/**
 * Limits the growth of V8's young generation, for this thread and all threads started later. It would grow to 48 MB in
 * each thread and never shrink, although an export's rows are not stored in it. Measured: 30 MB less for an idle worker
 * and 70 MB less for an exporting one, for 3 % more CPU time. Call it before loading anything else.
 */
export const limitSemiSpaceGrowth = (): void => setFlagsFromString('--semi-space-growth-factor=1');
