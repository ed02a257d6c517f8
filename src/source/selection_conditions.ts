import { createSettingParameters } from './setting_parameters.ts';
import { jsonProperty } from '../sql/json_property.ts';
import { propertyCondition } from './property_conditions.ts';
import type { PropertyFilter, RowSelection } from './row_selection.ts';

/** A column of JSON as an SQL expression, and its type. */
export interface JsonDocument {
  readonly expression: string;
  readonly type: string | undefined;
}

/** Where a statement finds what a selection speaks of; what a model does not have is left out. */
export interface SelectableColumns {
  readonly event?: string;
  readonly properties: Readonly<Partial<Record<PropertyFilter['type'], JsonDocument>>>;
}

/** A selection in SQL. */
export interface SelectionConditions {
  /** Conditions, each after an `and`; empty for every row. */
  readonly sql: string;
  /** The settings in which the statement finds the values, which are never part of its text. */
  readonly settings: Readonly<Record<string, string>>;
}

/** A selection that speaks of what its model does not have; it was accepted by an oversight. */
export class UnsupportedSelection extends Error {
  override readonly name = 'UnsupportedSelection';
}

/**
 * The conditions of a selection over a model's columns.
 * @throws UnsupportedSelection
 */
export function selectionConditions(
  { include_events, exclude_events, filters }: RowSelection,
  columns: SelectableColumns,
): SelectionConditions {
  const bind = createSettingParameters();
  const isOneOf = (names: readonly string[]): string => {
    if (columns.event === undefined)
      throw new UnsupportedSelection('The names of events cannot select rows that are no events.');
    return `${columns.event} = any (${bind.texts(names)})`;
  };
  const conditions = [
    ...(include_events.length > 0 ? [isOneOf(include_events)] : []),
    ...(exclude_events.length > 0 ? [`(${isOneOf(exclude_events)}) is not true`] : []),
    ...filters.map((filter) => {
      const document = columns.properties[filter.type];
      if (!document)
        throw new UnsupportedSelection(`Filters of type '${filter.type}' cannot select these rows.`);
      const property = jsonProperty(document.expression, document.type, bind.text(filter.key));
      return propertyCondition(filter, property, bind);
    }),
  ];
  return { sql: conditions.map((condition) => ` and ${condition}`).join(''), settings: bind.settings };
}
