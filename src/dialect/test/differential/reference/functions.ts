import { numberFunctions } from './number_functions.ts';
import { stringFunctions } from './string_functions.ts';
import { timeFunctions } from './time_functions.ts';
import { arrayFunctions } from './array_functions.ts';
import type { FunctionEntry } from './function_entry.ts';

/** The functions of single values, whose result is null if an argument is, unless the entry says otherwise. */
export const scalarFunctions: readonly FunctionEntry[] = [
  ...numberFunctions,
  ...stringFunctions,
  ...timeFunctions,
  ...arrayFunctions,
];
