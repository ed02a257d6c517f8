/**
 * Makes bodies of PostHog's API bodies of this one, here and nowhere else: what its GET returns can be sent unchanged. What an
 * export cannot have is rejected by its name.
 */
import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { destinationType } from '../../destination/config.ts';
import { dialectQueryText } from '../schemas.ts';
import { keepSentNames } from '../sent_names.ts';
import { propertyFilters } from '../../destination/selection_config.ts';

/** A field of PostHog that no export here has. Its exports have it null unless they use it. */
const unsupported = (message: string) =>
  z
    .null({ error: message })
    .optional()
    .meta({ description: `Only null, as PostHog sends it. ${message}` });

const { $schema: _dialect, ...filtersDocument } = z.toJSONSchema(propertyFilters, {
  io: 'input',
  unrepresentable: 'any',
});

/** Fields of exports that are elsewhere here, or have another name, or do not exist. */
export const posthogFields = {
  filters: z
    .custom<unknown[] | null>(
      (filters) => filters === null || Array.isArray(filters),
      "'filters' should be an array of filters",
    )
    .optional()
    .meta({
      description: 'The same as `filters` in `destination.config`, where responses have them.',
      anyOf: [filtersDocument, { type: 'null' }],
    }),
  hogql_query: dialectQueryText.nullish().meta({ description: 'The same as `dialect_query`.' }),
  hogql_modifiers: unsupported('The query of an export has no modifiers. Leave hogql_modifiers out.'),
  primary_key: unsupported('Exported files have no primary key. Leave primary_key out.'),
  version_key: unsupported('Exported files have no version key. Leave version_key out.'),
  incremental_mode: z
    .literal('APPEND', 'Only APPEND is supported: files are never merged with older ones.')
    .nullish()
    .meta({ description: 'Only `APPEND`: files are never merged with older ones.' }),
};

const integration = unsupported(
  'Integrations are not supported. Send aws_access_key_id and aws_secret_access_key, or role_arn, in destination.config, with endpoint_url for a server other than AWS.',
);

/** The same of destinations. */
export const posthogDestinationFields = { integration, integration_id: integration };

/** What PostHog calls destinations that are S3. */
const [awsType, compatibleType] = ['AwsS3', 'S3Compatible'] as const;

/** The types of destinations that requests may name. */
export const destinationTypes = [destinationType, awsType, compatibleType] as const;

/** The type of a destination. */
export const destinationTypeText = z.string().meta({
  description: `\`${destinationType}\`. PostHog's \`${awsType}\` and \`${compatibleType}\` are the same.`,
});

const extensionField = 'legacy_parquet_extension';

/** JSON Schema of the configs that requests may send, from that of configs. */
export const withPosthogFields = (document: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
  ...document,
  properties: {
    ...(document.properties as Readonly<Record<string, unknown>>),
    [extensionField]: {
      description: 'Only false or null: the names of Parquet files never have the compression.',
      anyOf: [{ type: 'boolean' }, { type: 'null' }],
    },
  },
});

type Config = Readonly<Record<string, unknown>>;

/** The fields of bodies that differ. */
interface PosthogBody {
  readonly filters?: unknown[] | null | undefined;
  readonly hogql_query?: string | null | undefined;
  readonly hogql_modifiers?: null | undefined;
  readonly primary_key?: null | undefined;
  readonly version_key?: null | undefined;
  readonly incremental_mode?: 'APPEND' | null | undefined;
  readonly dialect_query?: string | null | undefined;
  readonly destination?:
    | {
        readonly type?: string | undefined;
        readonly config?: Config | null | undefined;
        readonly integration?: null | undefined;
        readonly integration_id?: null | undefined;
      }
    | undefined;
}

/** A field that a body may have by two names. */
interface Renamed {
  readonly own: readonly string[];
  readonly sent: string;
}

/** The fields that bodies may have by the name of PostHog too. */
const queryNames: Renamed = { own: ['dialect_query'], sent: 'hogql_query' };
const filterNames: Renamed = { own: ['destination', 'config', 'filters'], sent: 'filters' };

/**
 * The value of a field that a body may have by two names, undefined without one. Of null and a value, the value; two values have
 * to be equal.
 */
function valueOf<Value>(
  { own, sent }: Renamed,
  [ownValue, sentValue]: readonly [Value, Value],
  { context, sentNames }: { readonly context: z.RefinementCtx; readonly sentNames: Map<string, string> },
): Value {
  if (sentValue === undefined) return ownValue;
  const differs = ownValue !== undefined && ownValue !== null && sentValue !== null;
  if (differs && !isDeepStrictEqual(ownValue, sentValue))
    reject(context, [sent], `${sent} and ${own.join('.')} are one field, and differ. Send one of them.`);
  if (ownValue === undefined || ownValue === null) sentNames.set(own.join('__'), sent);
  return ownValue ?? sentValue;
}

function reject(context: z.RefinementCtx, path: string[], message: string): void {
  context.addIssue({ code: 'custom', path, message });
}

/**
 * Makes a body that may have fields of PostHog one without. The transform of its schema.
 * @param isNew whether nothing is stored yet that the body changes
 */
export const fromPosthog =
  ({ isNew }: { readonly isNew: boolean }) =>
  <Body extends PosthogBody>(body: Body, context: z.RefinementCtx) => {
    const { filters, hogql_query, hogql_modifiers: _modifiers, primary_key: _primary, ...others } = body;
    const { version_key: _version, incremental_mode: _mode, ...rest } = others;
    const sentNames = new Map<string, string>();
    const names = { context, sentNames };
    const query = valueOf(queryNames, [body.dialect_query, hogql_query], names);
    const config = body.destination?.config;
    const ownFilters = valueOf<unknown>(filterNames, [config?.filters, filters], names);
    const destination = destinationOf(body.destination, ownFilters, { isNew, context });
    const own = {
      ...rest,
      ...(query !== undefined && { dialect_query: query }),
      ...(destination !== undefined && { destination }),
    };
    if (sentNames.size > 0) keepSentNames(own, sentNames);
    return own;
  };

/** A destination without fields of PostHog, with the filters of the body; undefined without any. */
function destinationOf(
  given: PosthogBody['destination'],
  filters: unknown,
  { isNew, context }: { readonly isNew: boolean; readonly context: z.RefinementCtx },
): Pick<NonNullable<PosthogBody['destination']>, 'type' | 'config'> | undefined {
  if (given === undefined) return filters === undefined ? undefined : { config: { filters } };
  const { type, config, integration: _integration, integration_id: _id, ...rest } = given;
  const { [extensionField]: extension = null, ...fields } = config ?? {};
  const pathOf = (field: string) => ['destination', 'config', field];
  if (extension !== null && extension !== false)
    reject(context, pathOf(extensionField), 'The names of Parquet files never have the compression.');
  const endpoint = fields.endpoint_url ?? '';
  if (type === awsType && endpoint !== '')
    reject(context, pathOf('endpoint_url'), `${awsType} has no endpoint_url. Use ${compatibleType}.`);
  if (type === compatibleType && endpoint === '' && isNew)
    reject(context, pathOf('endpoint_url'), `${compatibleType} needs the endpoint_url of the server.`);
  return {
    ...rest,
    ...(type !== undefined && { type: type === awsType || type === compatibleType ? destinationType : type }),
    ...((config ?? filters) !== undefined && {
      config: { ...fields, ...(filters !== undefined && { filters }) },
    }),
  };
}
