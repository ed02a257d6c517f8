import { z } from 'zod';
import { actionsNodeFields, dataWarehouseNodeFields, eventsNodeFields } from '../series/schema.ts';
import { mathKinds } from './math.ts';

const mathFields = {
  math: z
    .enum([...mathKinds, 'dialect'])
    .transform((math) => (math === 'dialect' ? 'hogql' : math))
    .nullish()
    .transform((math) => math ?? 'total'),
  /** The property that `avg` and similar aggregate; `$session_duration` is a session's length in seconds. */
  math_property: z.string().nullish(),
  math_property_type: z.string().nullish(),
  /** A factor for each number. */
  math_multiplier: z.number().nullish(),
  /** An aggregate expression over the events of an interval. */
  math_hogql: z.string().nullish(),
  math_dialect: z.string().nullish(),
  /** The type of groups that `unique_group` counts. */
  math_group_type_index: z.number().int().min(0).max(4).nullish(),
  math_property_revenue_currency: z.null().optional(),
};

type MathAliases = {
  readonly math_hogql?: string | null | undefined;
  readonly math_dialect?: string | null | undefined;
};

/** Merges both spellings of the field. */
function withOneName<Node extends MathAliases>({ math_dialect, ...node }: Node): Omit<Node, 'math_dialect'> {
  return { ...node, math_hogql: node.math_hogql ?? math_dialect ?? null };
}

/** A series of a trend: which events, and what is counted. */
export const trendsSeriesSchema = z.discriminatedUnion('kind', [
  z.strictObject({ ...eventsNodeFields, ...mathFields }).transform(withOneName),
  z.strictObject({ ...actionsNodeFields, ...mathFields }).transform(withOneName),
  z.strictObject({ ...dataWarehouseNodeFields, ...mathFields }).transform(withOneName),
]);
export type TrendsSeries = z.infer<typeof trendsSeriesSchema>;
