/** The parts of a JSON Schema of the OpenAPI document that a form is made of. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly readOnly?: boolean;
  readonly writeOnly?: boolean;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  /** The part of the form that shows the field. */
  readonly 'x-section'?: string;
  /** Whether exportd sets the field, although requests may send it. */
  readonly 'x-fixed'?: boolean;
  /** The values that make sense for a field that other fields restrict further. */
  readonly 'x-choices'?: readonly string[];
  /** What an editor suggests: the names of events, or time zones. */
  readonly 'x-suggest'?: 'events' | 'timezones';
  readonly 'x-language'?: 'dialect';
}

/** A schema without its null: what a value has to be when there is one. */
export function withoutNull(schema: JsonSchema): JsonSchema {
  if (typeof schema.type === 'object') {
    const [type, ...others] = schema.type.filter((name) => name !== 'null');
    return type !== undefined && others.length === 0 ? { ...schema, type } : schema;
  }
  const { anyOf, ...outer } = schema;
  const options = anyOf?.filter(({ type }) => type !== 'null') ?? [];
  const [only] = options;
  if (!anyOf || options.length === anyOf.length || options.length !== 1 || !only) return schema;
  return withoutNull({ ...only, ...outer });
}
