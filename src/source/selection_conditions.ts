import { createSettingParameters } from './setting_parameters.ts';
import { jsonProperty } from '../sql/json_property.ts';
import { propertyCondition } from './property_conditions.ts';
import type { PropertyFilter, RowSelection } from './row_selection.ts';

/** A JSON column as an SQL expression, and its type. */
export interface JsonColumn {
  readonly expression: string;
  readonly type: string | undefined;
}

/** The columns that a selection can use. Columns that a model does not have are left out. */
export interface SelectableColumns {
  readonly event?: string;
  readonly properties: Readonly<Partial<Record<PropertyFilter['type'], JsonColumn>>>;
}

/** A selection as SQL. */
export interface SelectionConditions {
  /** Conditions, each preceded by `and`; empty selects all rows. */
  readonly sql: string;
  /** The settings that hold the values. The SQL text never contains them. */
  readonly settings: Readonly<Record<string, string>>;
}

/** A selection uses columns that its model does not have. Validation should have rejected it. */
export class UnsupportedSelection extends Error {
  override readonly name = 'UnsupportedSelection';
}

/** Builds the conditions of a selection. @throws UnsupportedSelection */
export function selectionConditions(
  { include_events, exclude_events, filters }: RowSelection,
  columns: SelectableColumns,
): SelectionConditions {
  const parameters = createSettingParameters();
  const isOneOf = (names: readonly string[]): string => {
    if (columns.event === undefined)
      throw new UnsupportedSelection('Event names cannot filter rows of another model.');
    return `${columns.event} = any (${parameters.texts(names)})`;
  };
  const conditions = [
    ...(include_events.length > 0 ? [isOneOf(include_events)] : []),
    ...(exclude_events.length > 0 ? [`(${isOneOf(exclude_events)}) is not true`] : []),
    ...filters.map((filter) => {
      const column = columns.properties[filter.type];
      if (!column)
        throw new UnsupportedSelection(`Filters of type '${filter.type}' are not supported for this model.`);
      const property = jsonProperty(column.expression, column.type, parameters.text(filter.key));
      return propertyCondition(filter, property, parameters);
    }),
  ];
  return { sql: conditions.map((condition) => ` and ${condition}`).join(''), settings: parameters.settings };
}
