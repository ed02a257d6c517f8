import { z } from 'zod';
import type { Model } from '../domain/batch_export.ts';
import type { RowSelection } from '../source/row_selection.ts';
import { refuseMember } from './config_members.ts';
import { propertyFilters } from './property_filters.ts';

const eventNames = (member: string) => {
  const message = `The field '${member}' must be a list of names of events, none of them empty.`;
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
 * @throws CommandRefused that names the member.
 */
export function refuseSelectionForModel(selection: Partial<RowSelection>, model: Model): void {
  if (model === 'events') return;
  for (const member of ['include_events', 'exclude_events'] as const)
    if ((selection[member] ?? []).length > 0)
      throw refuseMember(
        member,
        `The field '${member}' is for exports of events; leave it out for ${model}.`,
      );
  if (selection.filters?.some(({ type }) => type === 'event'))
    throw refuseMember(
      'filters',
      `Filters of type 'event' are for exports of events; leave them out for ${model}.`,
    );
}
