import * as z from 'zod';

/**
 * Parses with one of two schemas, chosen by a predicate. Unlike those of a union, the issues then name the field at
 * fault.
 */
export const chooseSchema = <First, Second>(
  isFirst: (value: unknown) => boolean,
  first: z.ZodType<First>,
  second: z.ZodType<Second>,
): z.ZodType<First | Second> =>
  z.unknown().transform((value, context) => {
    const parsed = isFirst(value) ? first.safeParse(value) : second.safeParse(value);
    if (parsed.success) return parsed.data;
    for (const issue of parsed.error.issues) context.addIssue({ ...issue });
    return z.NEVER;
  });

/** Filter types of cohorts, which are all read in the same way. */
export const cohortTypes = ['cohort', 'static-cohort', 'precalculated-cohort'] as const;

/** Filter types. Types that read data that is not stored are parsed so that the error can name them. */
const filterTypes = [
  ...(['event', 'person', 'element', 'session', 'group', 'event_metadata', 'hogql', 'dialect'] as const),
  ...cohortTypes,
  ...(['feature', 'flag', 'recording', 'behavioral'] as const),
  ...(['log', 'log_entry', 'data_warehouse', 'data_warehouse_person_property', 'person_metadata'] as const),
  ...(['error_tracking_issue', 'revenue_analytics', 'workflow_variable', 'empty'] as const),
] as const;

/** The operators of a filter. */
export const filterOperators = [
  ...(['exact', 'is_not', 'in', 'not_in', 'is_cleaned_path_exact'] as const),
  ...(['icontains', 'not_icontains', 'regex', 'not_regex'] as const),
  ...(['gt', 'gte', 'lt', 'lte', 'min', 'max', 'between', 'not_between'] as const),
  ...(['is_set', 'is_not_set', 'is_date_exact', 'is_date_before', 'is_date_after'] as const),
] as const;
export type FilterOperator = (typeof filterOperators)[number];
export type FilterScalar = string | number | boolean | null;

/** Longer strings are no search terms, and PostgreSQL's pattern matching on them can run past every time limit. */
export const textValue = z.string().max(10_000, 'This must have at most 10,000 characters.');

const scalarValue = z.union(
  [textValue, z.number(), z.boolean(), z.null()],
  'This must be a string, a number, true, false or null.',
);

/** Maximum number of values of one filter. */
const maxValues = 10_000;
/** Maximum number of conditions of all filters: a list of equal values is one, any other value is one each. */
const maxConditions = 1_000;
const tooManyConditions = `These filters have more than ${maxConditions} conditions.`;
/** Operators that compare for equality, with any number of values at once. */
const listOperators: ReadonlySet<FilterOperator> = new Set(['exact', 'in', 'is_not', 'not_in']);

/** One filter. An incomplete filter is ignored, so no field is required. */
const propertyFilterSchema = z.strictObject({
  type: z
    .enum(filterTypes)
    .transform((type) => (type === 'dialect' ? 'hogql' : type))
    .nullish(),
  key: z.union([z.string(), z.number()], 'This must be a string or a number.').nullish(),
  operator: z.enum(filterOperators).nullish(),
  value: chooseSchema(
    (value) => Array.isArray(value),
    z.array(scalarValue).max(maxValues, 'This must have at most 10,000 values.'),
    scalarValue,
  ).optional(),
  label: z.string().nullish(),
  group_type_index: z.number().int().min(0).max(4).nullish(),
  group_key_names: z.record(z.string(), z.string()).nullish(),
  cohort_name: z.string().nullish(),
});
export type PropertyFilter = z.infer<typeof propertyFilterSchema>;

/** Conditions joined by one word. */
export interface PropertyGroup {
  readonly type: 'AND' | 'OR';
  readonly values: readonly (PropertyGroup | PropertyFilter)[];
}

const hasValues = (item: unknown): boolean => typeof item === 'object' && item !== null && 'values' in item;

/** Maximum depth of nested groups. */
export const maxLevels = 8;
const tooDeep = z.custom<PropertyGroup>(
  () => false,
  `Groups of property filters can be nested at most ${maxLevels} levels deep.`,
);
const groupSchema = (levels: number): z.ZodType<PropertyGroup> =>
  levels === 0
    ? tooDeep
    : z.strictObject({
        type: z.enum(['AND', 'OR']),
        values: z.array(chooseSchema(hasValues, groupSchema(levels - 1), propertyFilterSchema)),
      });

function countConditions(item: PropertyGroup | PropertyFilter): number {
  if ('values' in item) return item.values.reduce((sum, inner) => sum + countConditions(inner), 0);
  return Array.isArray(item.value) && !listOperators.has(item.operator ?? 'exact') ? item.value.length : 1;
}

/** A list of property filters; all must match. */
export const propertyFilterListSchema = z
  .array(propertyFilterSchema)
  .refine((values) => countConditions({ type: 'AND', values }) <= maxConditions, tooManyConditions);

/** Property filters: a list of which all must match, or groups joined by AND or OR. */
export type PropertyFilters = readonly PropertyFilter[] | PropertyGroup;
export const propertyFiltersSchema: z.ZodType<PropertyFilters> = chooseSchema(
  (value) => Array.isArray(value),
  propertyFilterListSchema,
  groupSchema(maxLevels).refine((group) => countConditions(group) <= maxConditions, tooManyConditions),
);
