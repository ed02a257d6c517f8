import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import openapiTS, { astToString } from 'openapi-typescript';
import { root } from '../config/installation.ts';

type Schema = Readonly<Record<string, unknown>>;
type Content = Readonly<Record<string, { readonly schema: Schema }>>;

interface Operation {
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: 'path' | 'query';
    readonly required?: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const prefix = '/api/projects/{project_id}';
const jsonType = 'application/json';

const objectOf = (properties: Readonly<Record<string, Schema>>, required: readonly string[]): Schema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

/** What requests and responses of an operation have, as one schema. */
function schemaOf(
  { summary, description, parameters = [], requestBody, responses }: Operation,
  schemas: Readonly<Record<string, Schema>>,
): Schema {
  const resolved = (schema: Schema): Schema =>
    schemas[String(schema.$ref).replace('#/components/schemas/', '')] ?? schema;
  const parametersIn = (place: 'path' | 'query'): Schema => {
    const given = parameters.filter((one) => one.in === place && one.name !== 'project_id');
    return objectOf(
      Object.fromEntries(given.map(({ name, schema }) => [name, schema])),
      given.filter(({ required }) => place === 'path' || required === true).map(({ name }) => name),
    );
  };
  const parts = { path: parametersIn('path'), query: parametersIn('query') };
  const results = Object.entries(responses).flatMap(([status, { content }]): Schema[] => {
    const schema = content?.[jsonType]?.schema ?? { type: 'null' };
    // The client waits for jobs.
    const isAwaited = status === '202' && schema.$ref === '#/components/schemas/Job';
    return status.startsWith('2') && !isAwaited ? [schema] : [];
  });
  const [first = {}, ...others] = results.filter(
    ({ $ref }, index) => $ref === undefined || results.findIndex((one) => one.$ref === $ref) === index,
  );
  const body = requestBody?.content[jsonType]?.schema;
  const isRequired = ({ required }: Schema): boolean => Array.isArray(required) && required.length > 0;
  return {
    description: [`${summary}.`, description].filter((text) => text !== undefined).join(' '),
    ...objectOf(
      {
        ...Object.fromEntries(
          Object.entries(parts).filter(([, { properties }]) => Object.keys(properties as object).length > 0),
        ),
        ...(body && { body }),
        result: others.length === 0 ? first : { anyOf: [first, ...others] },
      },
      [
        ...Object.entries(parts).flatMap(([name, part]) => (isRequired(part) ? [name] : [])),
        // A missing body is an empty one.
        ...(body && isRequired(resolved(body)) ? ['body'] : []),
        'result',
      ],
    ),
  };
}

/** Gives the configs of destinations names, since seven bodies have them. Those without required fields are of changes. */
function nameConfigs(document: Document): { document: Document; configs: Readonly<Record<string, Schema>> } {
  const configs: Record<string, Schema> = {};
  const name = (_: string, value: unknown): unknown => {
    const schema = value as Schema | null;
    if (schema?.title !== 'S3') return value;
    const own = Array.isArray(schema.required) ? 'S3Config' : 'S3ConfigChanges';
    configs[own] = schema;
    return { $ref: `#/components/schemas/${own}` };
  };
  return { document: JSON.parse(JSON.stringify(document), name) as Document, configs };
}

/** The file of the types in `src/client`, which git ignores. */
const file = join(root, 'src/client/operations.ts');

/** The OpenAPI document as types: an operation is one entry, with all that requests and responses have. */
async function describeOperations(document: Document): Promise<string> {
  const { document: shared, configs } = nameConfigs(document);
  const { paths, components } = shared;
  const operations = Object.entries(paths)
    .filter(([path]) => !path.startsWith('/api/environments/'))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]): [string, Schema] => [
        `${method.toUpperCase()} ${path.replace(prefix, '')}`,
        schemaOf(operation, components.schemas),
      ]),
    );
  const schemas = {
    openapi: '3.1.0',
    info: { title: 'exportd', version: '1' },
    paths: {},
    components: {
      schemas: {
        ...components.schemas,
        ...configs,
        Operations: objectOf(
          Object.fromEntries(operations),
          operations.map(([name]) => name),
        ),
      },
    },
  };
  const nodes = await openapiTS(JSON.stringify(schemas), {
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
    defaultNonNullable: false,
  });
  const types = astToString(nodes).replace(/^export type (paths|webhooks|\$defs|operations) = .*\n/gm, '');
  return `// Written by "npm run client" from the OpenAPI document.\n/* oxlint-disable */\n${types}`;
}

/** Writes the types of the client from the OpenAPI document, unless they are the same: editors watch the file. */
export async function writeClientTypes(document: string): Promise<void> {
  const types = await describeOperations(JSON.parse(document) as Document);
  if (!existsSync(file) || readFileSync(file, 'utf8') !== types) writeFileSync(file, types);
}
