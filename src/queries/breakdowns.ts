import * as z from 'zod';
import type { Expression } from '@exportd/dialect/ast';
import { buildExpression, buildField } from '@exportd/dialect/ast_builders';
import { chooseSchema } from '../filters/schema.ts';
import { parseExpressionAt } from './expressions.ts';
import { QueryError } from './query_errors.ts';

/** Breakdown types. Types that read data that is not stored are parsed so that the error can name them. */
const breakdownTypes = [
  ...(['event', 'person', 'session', 'group', 'hogql', 'dialect', 'event_metadata'] as const),
  ...(['cohort', 'data_warehouse', 'data_warehouse_person_property', 'revenue_analytics'] as const),
] as const;

const typeSchema = z
  .enum(breakdownTypes)
  .transform((type) => (type === 'dialect' ? 'hogql' : type))
  .nullish();

const property = z.union([z.string(), z.number()], 'This must be a string or a number.');
const groupIndex = z.number().int().min(0).max(4).nullish();
const bins = z.number().int().min(1).max(100).nullish();

/** One item of `breakdowns`. */
const breakdownSchema = z.strictObject({
  property,
  type: typeSchema,
  normalize_url: z.boolean().nullish(),
  histogram_bin_count: bins,
  group_type_index: groupIndex,
});

/** How a query's results are broken down. */
export const breakdownFilterSchema = z.strictObject({
  breakdown: chooseSchema((value) => Array.isArray(value), z.array(property), property).nullish(),
  breakdown_type: typeSchema,
  breakdown_group_type_index: groupIndex,
  breakdown_normalize_url: z.boolean().nullish(),
  breakdown_histogram_bin_count: bins,
  breakdowns: z.array(breakdownSchema).max(3, 'At most 3 breakdowns are supported.').nullish(),
  /** How many values have a separate line. */
  breakdown_limit: z.number().int().min(1).max(1_000).nullish(),
  /** Hides the line of all other values. */
  breakdown_hide_other_aggregation: z.boolean().nullish(),
  breakdown_path_cleaning: z.literal(false, 'Path cleaning rules are not stored.').nullish(),
});
export type BreakdownFilter = z.infer<typeof breakdownFilterSchema>;

/** One breakdown, normalized from both notations. */
export interface Breakdown {
  readonly type: Exclude<NonNullable<BreakdownFilter['breakdown_type']>, 'dialect'>;
  readonly property: string | number | readonly (string | number)[];
  readonly normalize_url: boolean;
  readonly bins: number | null;
  readonly group_type_index: number | null;
  /** Path of its field in the request. */
  readonly attr: string;
}

/** A breakdown by cohorts, each by its id, its name or `all` for everyone. */
interface CohortBreakdown {
  readonly cohorts: readonly (string | number)[];
  /** Path of its field in the request. */
  readonly attr: string;
}

/** The breakdowns of a filter by values of events; empty if it has none. */
export const breakdownsOf = (filter: BreakdownFilter | null | undefined): readonly Breakdown[] =>
  allBreakdowns(filter).filter(({ type }) => type !== 'cohort');

/** Each is a statement for each series. */
const maxCohorts = 25;

/** The breakdown by cohorts of a filter; null if it has none. @throws QueryError if it has others too */
export function cohortBreakdownOf(filter: BreakdownFilter | null | undefined): CohortBreakdown | null {
  const all = allBreakdowns(filter);
  const found = all.find(({ type }) => type === 'cohort');
  if (found === undefined) return null;
  const { property: named, attr } = found;
  if (all.length > 1)
    throw unsupported(attr, 'A breakdown by cohorts cannot be combined with others. Filter by a cohort.');
  const cohorts = typeof named === 'object' ? named : [named];
  if (cohorts.length > maxCohorts)
    throw unsupported(attr, `A breakdown can have at most ${maxCohorts} cohorts.`);
  return cohorts.length === 0 ? null : { cohorts, attr };
}

function allBreakdowns(filter: BreakdownFilter | null | undefined): readonly Breakdown[] {
  if (!filter) return [];
  const path = 'query__breakdownFilter';
  if (filter.breakdowns?.length)
    return filter.breakdowns.map((one, index) => ({
      type: one.type ?? 'event',
      property: one.property,
      normalize_url: one.normalize_url ?? false,
      bins: one.histogram_bin_count ?? null,
      group_type_index: one.group_type_index ?? null,
      attr: `${path}__breakdowns__${index}`,
    }));
  const { breakdown } = filter;
  if (breakdown === null || breakdown === undefined || breakdown === '') return [];
  return [
    {
      type: filter.breakdown_type ?? 'event',
      property: breakdown,
      normalize_url: filter.breakdown_normalize_url ?? false,
      bins: filter.breakdown_histogram_bin_count ?? null,
      group_type_index: filter.breakdown_group_type_index ?? null,
      attr: `${path}__breakdown`,
    },
  ];
}

const unsupported = (attr: string, message: string): QueryError =>
  new QueryError('not_supported', message, { attr });

/** Breakdown fields that are columns of events. */
const metadata: ReadonlySet<string> = new Set([
  ...(['event', 'distinct_id', 'uuid', 'person_id', 'timestamp', 'created_at', 'elements_chain'] as const),
  ...(['$session_id', '$window_id', '$group_0', '$group_1', '$group_2', '$group_3', '$group_4'] as const),
]);

/** The expression of a breakdown over an event. @throws QueryError */
export function breakdownExpression({ type, property, group_type_index, attr }: Breakdown): Expression {
  if (typeof property === 'object')
    throw unsupported(attr, 'Use the field breakdowns for several breakdowns.');
  const name = String(property);
  switch (type) {
    case 'event':
      return buildField('properties', name);
    case 'person':
      return buildField('person', 'properties', name);
    case 'session':
      return buildField('session', name);
    case 'group':
      return name === '$group_key'
        ? buildField(`$group_${group_type_index ?? 0}`)
        : buildField(`group_${group_type_index ?? 0}`, 'properties', name);
    case 'event_metadata':
      if (metadata.has(name)) return buildField(name);
      throw new QueryError(
        'invalid_input',
        `Events have no field ${name}. Fields: ${[...metadata].join(', ')}.`,
        { attr },
      );
    case 'hogql':
      return parseExpressionAt(name, attr);
    default:
      throw unsupported(attr, `Breakdowns of type ${type} are not supported.`);
  }
}

/** Normalizes a non-empty URL: trims trailing slashes, `?` and `#`. */
export const normalizedUrl = (text: Expression): Expression =>
  buildExpression("ifNull(nullIf(trimRight({text}, '/?#'), ''), '/')", { text });
