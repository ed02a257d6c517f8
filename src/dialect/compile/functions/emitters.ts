import { arrayEmitters } from '../../functions/emit/arrays.ts';
import { conversionEmitters } from '../../functions/emit/conversions.ts';
import { dateEmitters } from '../../functions/emit/dates.ts';
import { jsonEmitters } from '../../functions/emit/json.ts';
import { numberEmitters } from '../../functions/emit/numbers.ts';
import { stringEmitters } from '../../functions/emit/strings.ts';
import { conditionEmitters } from './conditions.ts';
import type { Emitter } from './call_site.ts';

/** Scalar functions that need more than an SQL template, by name. */
export const scalarEmitters: ReadonlyMap<string, Emitter> = new Map(
  Object.entries({
    ...numberEmitters,
    ...conditionEmitters,
    ...conversionEmitters,
    ...dateEmitters,
    ...stringEmitters,
    ...arrayEmitters,
    ...jsonEmitters,
  }),
);
