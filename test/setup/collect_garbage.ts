import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects the garbage of this process now. What files before have left would otherwise be part of a measurement. */
export const collectGarbage = runInNewContext('gc') as () => void;
