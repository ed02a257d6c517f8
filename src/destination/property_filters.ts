import { z } from 'zod';
import { filterOperators, type FilterOperator, type PropertyFilter } from '../filters/schema.ts';

const filterTypes = ['event', 'person', 'event_metadata', 'hogql', 'dialect'] as const;
const runFields = ['data_interval_start', 'data_interval_end'];
const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const value = z.union([scalar, z.array(scalar)]);
const withoutValue: readonly FilterOperator[] = ['is_set', 'is_not_set'];

const fields = z.object({
  type: z
    .enum(filterTypes, `Each filter must have a 'type' of one of: ${filterTypes.join(', ')}`)
    .transform((type) => (type === 'dialect' ? 'hogql' : type)),
  key: z.string("Each filter must have a 'key'").min(1, "Each filter must have a 'key'"),
  operator: z
    .enum(filterOperators, `The 'operator' of a filter must be one of: ${filterOperators.join(', ')}`)
    .nullable()
    .default('exact')
    .transform((operator) => operator ?? 'exact'),
  value: z.unknown().optional(),
});

/**
 * One item of the config field `filters`. Issues are full sentences. This is the shape that stored configs have; whether
 * a filter can be compiled depends on the model and is checked when it is saved, in `rejectSelectionForModel`.
 */
const filterSchema = z
  .custom<Record<string, unknown>>(
    (filter) => typeof filter === 'object' && filter !== null && !Array.isArray(filter),
    'Each filter must be an object',
  )
  .superRefine((filter, context) => {
    const unknown = Object.keys(filter).find((field) => !(field in fields.shape));
    if (unknown === undefined) return;
    const message = runFields.includes(unknown)
      ? `'data_interval_start' and 'data_interval_end' are run attributes and not 'filters'. Use a backfill to export a time range.`
      : "A filter can only have the fields 'type', 'key', 'operator' and 'value'";
    context.addIssue({ code: 'custom', message });
  })
  .pipe(fields)
  .transform((filter, context): PropertyFilter => {
    const { operator, type } = filter;
    if (withoutValue.includes(operator) || type === 'hogql') return { ...filter, value: null };
    const given = value.safeParse(filter.value);
    if (given.success) return { ...filter, value: given.data };
    context.addIssue({
      code: 'custom',
      path: ['value'],
      message: `The 'value' of a filter with the operator '${operator}' must be a string, a number, true, false, null or a list of these.`,
    });
    return z.NEVER;
  });

/** The config field `filters`: conditions on rows, all of which have to hold. */
export const propertyFilters = z
  .custom<unknown[]>(Array.isArray, "'filters' should be an array of filters")
  .meta({ type: 'array', items: z.toJSONSchema(fields, { io: 'input' }) })
  .pipe(z.array(filterSchema));
