import { join } from 'node:path';
import { cacheFolder } from './data_folder.ts';

/**
 * The folder with what Node has compiled for the server or the worker. The worker changes a flag of V8 when it starts, and V8 rejects
 * what was compiled with other flags: in one folder, each start of one compiled nearly all modules anew after a start of the other.
 */
export const compileCacheOf = (part: 'server' | 'worker'): string => join(cacheFolder('compiled'), part);
