import { renderWith, type Sql } from '../../dialect/sql.ts';

/**
 * Renders SQL fragments of one statement. Their values become settings of its transaction, because COPY does not
 * accept parameters.
 */
export interface SettingsSql {
  /** Renders a fragment. Equal values share a setting; each is evaluated once per statement. */
  readonly text: (fragment: Sql) => string;
  /** The settings that the rendered fragments need. */
  readonly settings: Readonly<Record<string, string>>;
}

/** @param kind of what the settings hold the values of, part of their names */
export function createSettingsSql(kind: 'query' | 'selection' = 'query'): SettingsSql {
  const settings: Record<string, string> = {};
  const names = new Map<string, string>();
  const nameOf = (value: string): string => {
    const known = names.get(value);
    if (known !== undefined) return known;
    const name = `exportd.${kind}_${names.size}`;
    names.set(value, name);
    settings[name] = value;
    return name;
  };
  return {
    settings,
    text: (fragment) =>
      // The outer cast makes it an array value instead of the rows of a subquery.
      renderWith(fragment, ({ value, type }) => `(select current_setting('${nameOf(value)}'))::${type}`),
  };
}
