import { z } from 'zod';
import { propertyOperators, type PropertyFilter, type PropertyOperator } from '../source/row_selection.ts';

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const text = z.string();
const textOrNumber = z.union([text, z.number()]);
const time = z.union([z.iso.date(), z.iso.datetime({ offset: true, local: true })]);
const oneOrMany = <Value extends z.ZodType>(value: Value) => z.union([value, z.array(value)]);

/** The values that an operator accepts, and their description in errors. */
interface ValueRule {
  readonly schema: z.ZodType;
  readonly description: string;
}

const anything: ValueRule = { schema: z.unknown(), description: 'anything' };
const equal: ValueRule = {
  schema: oneOrMany(scalar),
  description: 'a string, a number, true, false, null or a list of these',
};
const part: ValueRule = {
  schema: oneOrMany(textOrNumber),
  description: 'a string, a number or a list of these',
};
const pattern: ValueRule = { schema: oneOrMany(text), description: 'a string or a list of strings' };
const size: ValueRule = {
  schema: oneOrMany(textOrNumber),
  description: 'a number, a string or a list of these',
};
const range: ValueRule = {
  schema: z.tuple([textOrNumber, textOrNumber]),
  description: 'a list of two numbers or two strings',
};
const date: ValueRule = {
  schema: oneOrMany(time),
  description: 'a date or a time in ISO 8601, such as 2026-11-01 or 2026-11-01T10:00:00Z',
};

const valueRules: Readonly<Record<PropertyOperator, ValueRule>> = {
  exact: equal,
  is_not: equal,
  in: equal,
  not_in: equal,
  icontains: part,
  not_icontains: part,
  is_cleaned_path_exact: pattern,
  regex: pattern,
  not_regex: pattern,
  gt: size,
  gte: size,
  lt: size,
  lte: size,
  min: size,
  max: size,
  between: range,
  not_between: range,
  is_date_exact: date,
  is_date_before: date,
  is_date_after: date,
  is_set: anything,
  is_not_set: anything,
};

const filterTypes = ['event', 'person'] as const;
const runFields = ['data_interval_start', 'data_interval_end'];

const fields = z.object({
  type: z.enum(filterTypes, {
    error: ({ input }) =>
      input === 'hogql' || input === 'dialect'
        ? `Filters of type '${input}' are not supported yet.`
        : `Each filter must have a 'type' of one of: ${filterTypes.join(', ')}`,
  }),
  key: z.string("Each filter must have a 'key'").min(1, "Each filter must have a 'key'"),
  operator: z
    .enum(propertyOperators, `The 'operator' of a filter must be one of: ${propertyOperators.join(', ')}`)
    .nullable()
    .default('exact')
    .transform((operator) => operator ?? 'exact'),
  value: z.unknown().optional(),
});

/** One item of the config field `filters`. Issues are full sentences. */
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
    const { operator } = filter;
    const rule = valueRules[operator];
    if (rule === anything) return { ...filter, value: null };
    const value = z.intersection(rule.schema, oneOrMany(scalar)).safeParse(filter.value);
    if (value.success) return { ...filter, value: value.data };
    context.addIssue({
      code: 'custom',
      message: `The 'value' of a filter with the operator '${operator}' must be ${rule.description}.`,
    });
    return z.NEVER;
  });

/** The config field `filters`: conditions on properties, all of which have to hold. */
export const propertyFilters = z
  .custom<unknown[]>(Array.isArray, "'filters' should be an array of filters")
  .meta({ type: 'array', items: z.toJSONSchema(fields, { io: 'input' }) })
  .pipe(z.array(filterSchema));
