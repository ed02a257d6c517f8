import { withoutNull, type JsonSchema } from './json_schema.ts';

/** How a value is entered. */
export type Control =
  | 'text'
  | 'secret'
  | 'number'
  | 'checkbox'
  | 'select'
  | 'time'
  | 'dialect'
  /** Texts, one per line. */
  | 'lines'
  /** Objects, one per row. */
  | 'objects'
  | 'json';

/** A field of a form. */
export interface FormField {
  /** Its path in the body. */
  readonly path: readonly string[];
  /** The path as errors of the API name it. */
  readonly attr: string;
  readonly label: string;
  readonly hint: string | undefined;
  readonly section: string;
  readonly control: Control;
  readonly required: boolean;
  readonly choices: readonly string[];
  readonly suggestions: readonly string[];
  /** What else is suggested. */
  readonly suggest: JsonSchema['x-suggest'];
  readonly default: unknown;
  readonly minimum: number | undefined;
  readonly maximum: number | undefined;
  /** The fields of each object of `objects`. */
  readonly itemFields: readonly FormField[];
}

/** The first section, of fields without another one. */
export const mainSection = 'Export';

/**
 * The fields of a body, in the order of its schema. Of a destination, those of the config that `destinationType` names, or
 * of the first one.
 */
export function fieldsOf(schema: JsonSchema, destinationType?: string): readonly FormField[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    name === 'destination'
      ? destinationFields(withoutNull(property), destinationType)
      : fieldOf([name], property, schema.required),
  );
}

function destinationFields(schema: JsonSchema, chosen: string | undefined): readonly FormField[] {
  const types = withoutNull(schema.properties?.config ?? {}).anyOf ?? [];
  const names = types.map(({ title = '' }) => title);
  const config = types.find(({ title }) => title === chosen) ?? types[0] ?? {};
  const type: JsonSchema = { title: 'Destination', type: 'string', enum: names, default: names[0] };
  return [
    ...fieldOf(['destination', 'type'], { ...type, 'x-section': 'Bucket' }, ['type']),
    ...Object.entries(config.properties ?? {}).flatMap(([name, property]) =>
      fieldOf(['destination', 'config', name], property, config.required),
    ),
  ];
}

function fieldOf(
  path: readonly string[],
  schema: JsonSchema,
  required: readonly string[] | undefined,
): readonly FormField[] {
  const inner = withoutNull(schema);
  const name = path.at(-1) ?? '';
  if (inner.readOnly || inner['x-fixed']) return [];
  const item = withoutNull(inner.items ?? {});
  return [
    {
      path,
      attr: path.join('__'),
      label: inner.title ?? labelOf(name),
      hint: inner.description,
      section: inner['x-section'] ?? mainSection,
      control: controlOf(inner, item),
      required: required?.includes(name) ?? false,
      choices: (inner['x-choices'] ?? inner.enum ?? []).filter((choice) => choice !== null).map(String),
      suggestions: (inner.examples ?? []).map(String),
      suggest: inner['x-suggest'],
      default: inner.default ?? undefined,
      minimum: inner.minimum,
      maximum: inner.maximum,
      itemFields: Object.entries(item.properties ?? {}).flatMap(([key, property]) =>
        fieldOf([key], property, item.required),
      ),
    },
  ];
}

function controlOf(schema: JsonSchema, item: JsonSchema): Control {
  if (schema['x-language'] === 'dialect') return 'dialect';
  if (schema.enum || schema['x-choices']) return 'select';
  switch (schema.type) {
    case 'boolean':
      return 'checkbox';
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return item.properties ? 'objects' : item.type === 'string' ? 'lines' : 'json';
    case 'string':
      return schema.writeOnly ? 'secret' : schema.format === 'date-time' ? 'time' : 'text';
    default:
      return 'json';
  }
}

/** `on_bad_row` becomes `On bad row`. */
function labelOf(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
