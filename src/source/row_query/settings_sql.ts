import type { Sql } from '../../dialect/sql.ts';

/** Renders pieces of one statement whose values are settings of its transaction, since COPY takes no parameters. */
export interface SettingsSql {
  /** A piece as text. Equal values share a setting; each is evaluated once for the statement. */
  readonly text: (piece: Sql) => string;
  /** The settings that have to be set for what was rendered. */
  readonly settings: Readonly<Record<string, string>>;
}

/** Begins with no value. */
export function createSettingsSql(): SettingsSql {
  const settings: Record<string, string> = {};
  const names = new Map<string, string>();
  const nameOf = (value: string): string => {
    const known = names.get(value);
    if (known !== undefined) return known;
    const name = `exportd.query_${names.size}`;
    names.set(value, name);
    settings[name] = value;
    return name;
  };
  return {
    settings,
    text: ({ parts }) =>
      parts
        .map((part) =>
          // The cast outside tells an array from the rows of a subquery.
          typeof part === 'string' ? part : `(select current_setting('${nameOf(part.value)}'))::${part.type}`,
        )
        .join(''),
  };
}
