import { z } from 'zod';
import type { Model } from '../domain/batch_export.ts';
import type { RowSelection } from '../source/row_selection.ts';
import { FilterError } from '../filters/operand.ts';
import { checkFilters } from '../source/selection_conditions.ts';
import { rejectField } from './config_fields.ts';
import { propertyFilters } from './property_filters.ts';

const eventNames = (field: string, description: string) => {
  const message = `The field '${field}' must be a list of non-empty event names.`;
  return z
    .custom<unknown[]>(Array.isArray, message)
    .meta({ type: 'array', items: { type: 'string', minLength: 1 } })
    .pipe(z.array(z.string(message).min(1, message)))
    .default([])
    .meta({ 'x-section': 'Rows', 'x-suggest': 'events', description });
};

/** The config fields that select rows, for the schema of any destination. */
export const rowSelectionFields = {
  include_events: eventNames('include_events', 'Names of the only events that are exported. Empty for all.'),
  exclude_events: eventNames('exclude_events', 'Names of events that are not exported.'),
  filters: propertyFilters.default([]).meta({
    'x-section': 'Rows',
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
