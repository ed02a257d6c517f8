/**
 * Values that a statement reads by settings of its transaction, since COPY takes no parameters. Each is an expression
 * that PostgreSQL evaluates once for the statement, not for every row.
 */
export interface SettingParameters {
  /** The settings that have to be set for the statement. */
  readonly settings: Readonly<Record<string, string>>;
  text(value: string): string;
  /** An array of texts. */
  texts(values: readonly string[]): string;
  /** An array of numerics, of texts that PostgreSQL reads as such. */
  numerics(values: readonly string[]): string;
  timestamp(value: string): string;
}

/** Begins with no value. */
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
    // The casts tell an array from the rows of a subquery.
    texts: (values) => `(select array(select value from ${elements(values)}))::text[]`,
    numerics: (values) => `(select array(select value::numeric from ${elements(values)}))::numeric[]`,
    timestamp: (value) => `(select ${bind(value)}::timestamptz)`,
  };
}
