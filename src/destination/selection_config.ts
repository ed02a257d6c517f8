/** The fields of a config that select rows: event names and property filters. */
import * as z from 'zod';
import { bounds, boundText } from '../config/bounds.ts';
import type { Model } from '../domain/batch_export.ts';
import { FilterError } from '../filters/operand.ts';
import { type FilterOperator, filterOperators, type PropertyFilter } from '../filters/schema.ts';
import { checkFilters } from '../source/row_query/selected_rows.ts';
import type { RowSelection } from '../source/row_selection.ts';
import { rejectField } from './config_fields.ts';

const filterTypes = ['event', 'person', 'event_metadata', 'hogql', 'dialect'] as const;
const runFields = ['data_interval_start', 'data_interval_end'];
const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const filterValue = z.union([scalar, z.array(scalar)]);
const withoutValue: readonly FilterOperator[] = ['is_set', 'is_not_set'];

const filterFields = z.object({
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
    const unknown = Object.keys(filter).find((field) => !(field in filterFields.shape));
    if (unknown === undefined) return;
    const message = runFields.includes(unknown)
      ? `'data_interval_start' and 'data_interval_end' are run attributes and not 'filters'. Use a backfill to export a time range.`
      : "A filter can only have the fields 'type', 'key', 'operator' and 'value'";
    context.addIssue({ code: 'custom', message });
  })
  .pipe(filterFields)
  .transform((filter, context): PropertyFilter => {
    const { operator, type } = filter;
    if (withoutValue.includes(operator) || type === 'hogql') return { ...filter, value: null };
    const given = filterValue.safeParse(filter.value);
    if (given.success) return { ...filter, value: given.data };
    context.addIssue({
      code: 'custom',
      path: ['value'],
      message: `The 'value' of a filter with the operator '${operator}' must be a string, a number, true, false, null or a list of these.`,
    });
    return z.NEVER;
  });

const patternOperators: ReadonlySet<unknown> = new Set(['regex', 'not_regex'] satisfies FilterOperator[]);

/** The regular expressions of filters as a request has them. The databases compile each for every statement. */
const patternsIn = (filters: readonly unknown[]): string[] =>
  filters.flatMap((filter) => {
    if (typeof filter !== 'object' || filter === null) return [];
    const { operator, value } = filter as { readonly operator?: unknown; readonly value?: unknown };
    return patternOperators.has(operator) ? [value].flat().map(String) : [];
  });

/** The values of a field of all filters as a request has them. */
const valuesIn = (filters: readonly unknown[], field: 'key' | 'value'): unknown[] =>
  filters.flatMap((filter) =>
    typeof filter === 'object' && filter !== null && field in filter
      ? (filter as Record<typeof field, unknown>)[field]
      : [],
  );

/** The characters of texts. Compiling long expressions keeps all other requests waiting. */
const lengthOf = (texts: readonly unknown[]): number =>
  texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? text.length : 0), 0);

/** The config field `filters`: conditions on rows, all of which have to hold. */
export const propertyFilters = z
  .custom<unknown[]>(Array.isArray, "'filters' should be an array of filters")
  .refine(
    ({ length }) => length <= bounds.filters.max,
    `An export has at most ${boundText(bounds.filters)} filters.`,
  )
  .refine(
    (filters) => valuesIn(filters, 'value').length <= bounds.filterValues.max,
    `The filters of an export have at most ${boundText(bounds.filterValues)} values.`,
  )
  .refine(
    (filters) => lengthOf(valuesIn(filters, 'key')) <= bounds.filterExpressions.max,
    `The keys and expressions of an export's filters have at most ${boundText(bounds.filterExpressions)}.`,
  )
  .refine(
    (filters) => patternsIn(filters).length <= bounds.patterns.max,
    `The filters of an export have at most ${boundText(bounds.patterns)} regular expressions.`,
  )
  .refine(
    (filters) => patternsIn(filters).every((pattern) => pattern.length <= bounds.pattern.max),
    `A regular expression in a filter has at most ${boundText(bounds.pattern)}.`,
  )
  .meta({ type: 'array', maxItems: bounds.filters.max, items: z.toJSONSchema(filterFields, { io: 'input' }) })
  .pipe(z.array(filterSchema));

const eventNames = (field: string, description: string) => {
  const message = `The field '${field}' must be a list of non-empty event names.`;
  const [maxItems, maxLength] = [bounds.eventNames.max, bounds.eventName.max];
  return z
    .custom<unknown[]>(Array.isArray, message)
    .refine(
      ({ length }) => length <= maxItems,
      `The field '${field}' has at most ${boundText(bounds.eventNames)} names.`,
    )
    .meta({ type: 'array', maxItems, items: { type: 'string', minLength: 1, maxLength } })
    .pipe(
      z.array(
        z
          .string(message)
          .min(1, message)
          .max(maxLength, `An event name has at most ${boundText(bounds.eventName)}.`),
      ),
    )
    .default([])
    .meta({ description });
};

/** The config fields that select rows. */
export const rowSelectionFields = {
  include_events: eventNames('include_events', 'Names of the only events that are exported. Empty for all.'),
  exclude_events: eventNames('exclude_events', 'Names of events that are not exported.'),
  filters: propertyFilters.default([]).meta({
    description: 'Conditions on properties, all of which have to hold.',
  }),
};

/**
 * Rejects a selection that cannot be used for a model: persons have no events, and the dialect rejects some filters.
 * @throws CommandRejected with the field
 */
export function rejectSelectionForModel(selection: Partial<RowSelection>, model: Model): void {
  try {
    checkFilters(selection.filters ?? [], model);
  } catch (error) {
    throw error instanceof FilterError ? rejectField(error.attr, error.message) : error;
  }
  if (model === 'events') return;
  for (const field of ['include_events', 'exclude_events'] as const)
    if ((selection[field] ?? []).length > 0)
      throw rejectField(
        field,
        `The field '${field}' is only supported for exports of events. Remove it for ${model}.`,
      );
}

const rowSelection = z.object(rowSelectionFields);

/** The rows that a stored config selects. */
export const selectionOf = (config: Readonly<Record<string, unknown>>): RowSelection =>
  rowSelection.parse(config);
