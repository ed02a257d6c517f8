import { arrayEmitters } from '../../functions/emit/arrays.ts';
import { conversionEmitters } from '../../functions/emit/conversions.ts';
import { dateEmitters } from '../../functions/emit/dates.ts';
import { documentEmitters } from '../../functions/emit/documents.ts';
import { numberEmitters } from '../../functions/emit/numbers.ts';
import { textEmitters } from '../../functions/emit/texts.ts';
import { conditionEmitters } from './conditions.ts';
import type { Emitter } from './site.ts';

/** Functions whose SQL is more than a text with arguments in it, by the names of their definitions. */
export const scalarEmitters: ReadonlyMap<string, Emitter> = new Map(
  Object.entries({
    ...numberEmitters,
    ...conditionEmitters,
    ...conversionEmitters,
    ...dateEmitters,
    ...textEmitters,
    ...arrayEmitters,
    ...documentEmitters,
  }),
);
