import * as z from 'zod';
import type { Expression } from '@exportd/dialect/ast';
import { buildExpression, buildField, buildSelect, combineConditions } from '@exportd/dialect/ast_builders';
import { conditionOfFilters, filterCondition, isOfCohort } from '../filters/condition.ts';
import type { FilterTarget } from '../filters/operand.ts';
import {
  chooseSchema,
  maxLevels,
  type PropertyFilter,
  propertyFilterListSchema,
  type PropertyFilters,
  propertyFiltersSchema,
  type PropertyGroup,
} from '../filters/schema.ts';
import { type DateRange, dateRangeSchema, withOverriddenDates } from './dates.ts';
import { type DialectReader, parseExpressionAt } from './dialect_reader.ts';
import { asQueryError, QueryError } from './query_errors.ts';
import type { FiltersOverride, QueryProject } from './query_kind.ts';

/** The condition of the filters of a request on a row; null if there is none. @throws QueryError */
export const filtersCondition = (
  filters: PropertyFilters | null | undefined,
  target: FilterTarget,
): Expression | null => asQueryError(() => conditionOfFilters(filters, target));

/**
 * The condition that excludes the project's test accounts; null if the project defines none. For rows of persons, only
 * filters on persons apply.
 * @throws QueryError
 */
export function testAccountsCondition(
  { test_account_filters }: QueryProject,
  scope: FilterTarget['scope'],
  more: Pick<FilterTarget, 'relation' | 'bindings'> = {},
): Expression | null {
  const attr = 'query__filterTestAccounts';
  const read = propertyFilterListSchema.safeParse(test_account_filters);
  if (!read.success)
    throw new QueryError('invalid_input', "The project's test account filters are invalid.", {
      attr,
    });
  const filters =
    scope === 'persons'
      ? read.data.filter((filter) => filter.type === 'person' || isOfCohort(filter))
      : read.data;
  return combineConditions(
    'and',
    filters.map((filter) => asQueryError(() => filterCondition(filter, { scope, ...more }, attr))),
  );
}

/** One property filter of a request. */
interface FilterItem {
  readonly filter: PropertyFilter;
  /** Its path in the request. */
  readonly path: string;
  /** The path that an error of the dialect names: the filter, or its key if that is an expression. */
  readonly attr: string;
}

/**
 * The filters that may fail to compile, at any depth of groups: expressions, fields of sessions, properties of groups,
 * which a source may lack, and dates on columns without times. Properties of events and persons exist under any name.
 * @param attr path of all the filters
 */
export function fallibleFilters(
  filters: PropertyFilters | null | undefined,
  attr: string,
): readonly FilterItem[] {
  if (filters === null || filters === undefined) return [];
  const items = 'type' in filters ? itemsOf(filters.values, `${attr}__values`) : itemsOf(filters, attr);
  return items.filter(({ filter }) => isFallible(filter));
}

/** The conditions of those filters, each with the path that its error names. @throws QueryError */
export const fallibleConditions = (
  filters: PropertyFilters | null | undefined,
  target: FilterTarget,
): readonly { readonly condition: Expression; readonly attr: string }[] =>
  fallibleFilters(filters, target.attr).flatMap(({ filter, path, attr }) => {
    const condition = asQueryError(() => filterCondition(filter, target, path));
    return condition === null ? [] : [{ condition, attr }];
  });

const itemsOf = (values: PropertyGroup['values'], attr: string): readonly FilterItem[] =>
  values.flatMap((item, index): readonly FilterItem[] => {
    const path = `${attr}__${index}`;
    if ('values' in item) return itemsOf(item.values, `${path}__values`);
    return [{ filter: item, path, attr: item.type === 'hogql' ? `${path}__key` : path }];
  });

const alwaysSupported: readonly PropertyFilter['type'][] = [null, undefined, 'event', 'person'];

const isFallible = ({ type, operator }: PropertyFilter): boolean =>
  !alwaysSupported.includes(type) || operator?.startsWith('is_date') === true;

type Compiler = Pick<DialectReader, 'compile'>;

/**
 * Compiles filters of events one by one, so that an error names the filter rather than a generated statement.
 * @param attr path of all the filters
 * @throws QueryError
 */
export function checkFilters(
  filters: PropertyFilters | null | undefined,
  attr: string,
  reader: Compiler,
): void {
  for (const item of fallibleConditions(filters, { scope: 'events', attr }))
    check(item.condition, item.attr, reader);
}

/** Compiles the filters that exclude test accounts. @throws QueryError */
export function checkTestAccounts(project: QueryProject, reader: Compiler): void {
  check(testAccountsCondition(project, 'events'), 'query__filterTestAccounts', reader);
}

function check(condition: Expression | null, attr: string, reader: Compiler): void {
  if (condition !== null)
    reader.compile(buildSelect('select 1 from events where {condition}', { condition }), { attr });
}

const overridePath = 'filters_override__properties';

/**
 * A query's own property filters combined with those of a dashboard; all must match.
 * @param scope the rows that are filtered
 * @throws QueryError with the path of the invalid dashboard filter
 */
export function withOverride(
  own: PropertyFilters | null | undefined,
  more: FiltersOverride['properties'],
  scope: FilterTarget['scope'] = 'events',
): PropertyFilters | null {
  if (!more?.length) return own ?? null;
  const read = propertyFilterListSchema.safeParse(more);
  if (!read.success) throw invalidFilter(read.error);
  filtersCondition(read.data, { scope, attr: overridePath });
  if (own === null || own === undefined) return read.data;
  if (!('type' in own)) return [...own, ...read.data];
  const values = own.type === 'AND' ? own.values : [own];
  const joined = propertyFiltersSchema.safeParse({ type: 'AND', values: [...values, ...read.data] });
  if (joined.success) return joined.data;
  throw new QueryError(
    'invalid_input',
    `The property filters of this query are already nested ${maxLevels} levels deep, the maximum, so that none can be added.`,
    { attr: overridePath },
  );
}

function invalidFilter({ issues }: z.ZodError): QueryError {
  const [issue] = issues;
  const path = [overridePath, ...(issue?.path ?? [])].join('__');
  return new QueryError(
    'invalid_input',
    `This is not a valid property filter: ${issue?.message ?? 'unknown format'}.`,
    {
      attr: path,
    },
  );
}

/** Fields that every query kind accepts; no result depends on them. */
export const ignoredFields = {
  response: z.unknown().optional(),
  name: z.string().nullish(),
  /** Whether to return what the query cost, as `explain`. Its statements then run a second time. */
  explain: z.boolean().nullish(),
  modifiers: z.looseObject({}).nullish(),
  tags: z.looseObject({}).nullish(),
  version: z.number().nullish(),
};

/** Their names, which the cache key leaves out. */
export const ignoredFieldNames: ReadonlySet<string> = new Set(Object.keys(ignoredFields));

const invalidFactor = 'The sampling factor must be greater than 0 and at most 1, such as 0.1.';

/** The share of distinct ids whose events an insight reads; null for all. */
const samplingFactorSchema = z
  .number()
  .gt(0, invalidFactor)
  .max(1, invalidFactor)
  .nullish()
  .transform((factor) => (factor === 1 ? null : (factor ?? null)));

/** Extrapolates a count over a sample to all events. */
export const countOfAll = (count: number, factor: number | null): number =>
  factor === null ? count : Math.round(count / factor);

/** The fields of an insight that select its events and intervals. */
export const insightFields = {
  interval: z
    .enum(['minute', 'hour', 'day', 'week', 'month'])
    .nullish()
    .transform((interval) => interval ?? 'day'),
  dateRange: dateRangeSchema.nullish(),
  properties: propertyFiltersSchema.nullish().transform((filters): PropertyFilters | null => filters ?? null),
  filterTestAccounts: z
    .boolean()
    .nullish()
    .transform((filtered) => filtered ?? false),
  samplingFactor: samplingFactorSchema,
  /** Affects presentation only. */
  dataColorTheme: z.number().nullish(),
};

/**
 * An insight with a dashboard's filters: the dates replace its own, the property filters are added to its own.
 * @throws QueryError with the path of the invalid filter
 */
export const overriddenInsight = <
  Query extends {
    readonly dateRange?: DateRange | null | undefined;
    readonly properties: PropertyFilters | null;
  },
>(
  query: Query,
  filters: FiltersOverride,
) => ({
  ...query,
  dateRange: withOverriddenDates(query.dateRange, filters),
  properties: withOverride(query.properties, filters.properties),
});

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
