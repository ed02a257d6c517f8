/**
 * Parameters that a statement reads from settings of its transaction, because COPY does not accept parameters. Each
 * method returns an expression that PostgreSQL evaluates once per statement.
 */
export interface SettingParameters {
  /** The settings that the statement needs. */
  readonly settings: Readonly<Record<string, string>>;
  text(value: string): string;
  /** An array of strings. */
  texts(values: readonly string[]): string;
  /** An array of numerics, from their text. */
  numerics(values: readonly string[]): string;
  timestamp(value: string): string;
}

export function createSettingParameters(): SettingParameters {
  const settings: Record<string, string> = {};
  const bind = (value: string): string => {
    const name = `exportd.selection_${Object.keys(settings).length}`;
    settings[name] = value;
    return `current_setting('${name}')`;
  };
  const elements = (values: readonly string[]) =>
    `jsonb_array_elements_text(${bind(JSON.stringify(values))}::jsonb) as element (value)`;
  return {
    settings,
    text: (value) => `(select ${bind(value)})`,
    // The casts make these array values instead of the rows of a subquery.
    texts: (values) => `(select array(select value from ${elements(values)}))::text[]`,
    numerics: (values) => `(select array(select value::numeric from ${elements(values)}))::numeric[]`,
    timestamp: (value) => `(select ${bind(value)}::timestamptz)`,
  };
}
