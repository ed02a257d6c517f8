import * as z from 'zod';
import type { JsonValue } from '@exportd/dialect/resolve/placeholders';
import { dateRangeSchema } from '../dates.ts';
import { propertyFiltersSchema } from '../../filters/schema.ts';
import { breakdownFilterSchema } from '../breakdowns.ts';

const json: z.ZodType<JsonValue> = z.json();

/** A query of the kind DialectQuery. */
export const dialectQuerySchema = z.strictObject({
  kind: z.literal('DialectQuery'),
  query: z.string('This field must be a string.'),
  /** Available in the text as `{name}`. */
  values: z.record(z.string(), json).nullish(),
  /** By their ids; available in the text as `{variables.<code_name>}`. */
  variables: z
    .record(
      z.string(),
      z.strictObject({
        variableId: z.string().nullish(),
        code_name: z.string(),
        value: json.optional(),
        isNull: z.boolean().nullish(),
      }),
    )
    .nullish(),
  /** The value of `{filters}` in the text. */
  filters: z
    .strictObject({
      dateRange: dateRangeSchema.nullish(),
      properties: propertyFiltersSchema.nullish(),
      filterTestAccounts: z.boolean().nullish(),
      /** The value of `{filters.interval}`. */
      interval: z.enum(['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year']).nullish(),
      /** Which column of `{filters.breakdown(…)}` is read. */
      breakdownFilter: breakdownFilterSchema.nullish(),
    })
    .nullish(),
  name: z.string().nullish(),
  /** Returns what the query cost, as `explain`. The statement then runs a second time. */
  explain: z.boolean().nullish(),
  modifiers: z.looseObject({}).nullish(),
  tags: z.looseObject({}).nullish(),
  version: z.number().nullish(),
});
export type DialectQuery = z.infer<typeof dialectQuerySchema>;
