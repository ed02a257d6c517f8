import { z } from 'zod';
import type { Model } from '../domain/batch_export.ts';
import type { RowSelection } from '../source/row_selection.ts';
import { rejectField } from './config_fields.ts';
import { propertyFilters } from './property_filters.ts';

const eventNames = (field: string) => {
  const message = `The field '${field}' must be a list of names of events, none of them empty.`;
  return z
    .custom<unknown[]>(Array.isArray, message)
    .pipe(z.array(z.string(message).min(1, message)))
    .default([]);
};

/** The members of a config that say which rows are exported, for the schema of any destination. */
export const rowSelectionMembers = {
  include_events: eventNames('include_events'),
  exclude_events: eventNames('exclude_events'),
  filters: propertyFilters.default([]),
};

/**
 * Refuses a selection that has no meaning for a model: persons have no events.
 * @throws CommandRejected that names the member.
 */
export function refuseSelectionForModel(selection: Partial<RowSelection>, model: Model): void {
  if (model === 'events') return;
  for (const field of ['include_events', 'exclude_events'] as const)
    if ((selection[field] ?? []).length > 0)
      throw rejectField(field, `The field '${field}' is for exports of events; leave it out for ${model}.`);
  if (selection.filters?.some(({ type }) => type === 'event'))
    throw rejectField(
      'filters',
      `Filters of type 'event' are for exports of events; leave them out for ${model}.`,
    );
}
