/** The config fields of the Iceberg REST catalog that the table of an export is in. Their names are those of PyIceberg's catalogs. */
import type { LookupFunction } from 'node:net';
import { z } from 'zod';
import {
  type AllowedPrivateAddresses,
  outgoingUrlProblem,
  privateAddressProblem,
  publicAddressLookup,
} from '../network/outgoing_url.ts';
import type { Model } from '../domain/batch_export.ts';
import { DestinationError } from './destination.ts';
import { tableFolderOf } from './keys.ts';
import { configAttribute, rejectField } from './formats.ts';
import { CommandRejected } from '../domain/errors.ts';

const emptyAsNull = (given: string): string | null => (given === '' ? null : given);

const maxNameLength = 255;
const text = () => z.string().transform(emptyAsNull).nullable().default(null);
const name = (field: string, pattern: RegExp, form: string) =>
  z
    .string()
    .max(maxNameLength, `The ${field} has at most ${maxNameLength} characters.`)
    .regex(pattern, `The ${field} must ${form}.`)
    .transform(emptyAsNull)
    .nullable()
    .default(null);
/** A secret for a request header, where other characters are invalid. */
const secret = (field: string) =>
  z
    .string()
    .regex(/^[\x21-\x7e]+$/, `The ${field} must be ASCII characters without spaces, and not empty.`)
    .optional();

/** The fields, all of which are empty unless `table_format` is `iceberg`. */
export const catalogFields = {
  catalog_uri: text().meta({
    title: 'Catalog URI',
    description: 'Iceberg: the URL of the REST catalog, without its /v1.',
    examples: ['https://catalog.example.com/iceberg'],
  }),
  catalog_warehouse: text().meta({
    title: 'Warehouse',
    description: 'Iceberg: the warehouse of the catalog, if it has several.',
  }),
  catalog_namespace: name(
    'catalog_namespace',
    /^([\w-]+(\.[\w-]+)*)?$/,
    'be names of letters, digits, _ and -, separated by dots',
  ).meta({
    title: 'Namespace',
    description: 'Iceberg: where the table is in the catalog. Created if it does not exist.',
    examples: ['analytics'],
  }),
  catalog_table: name('catalog_table', /^[\w-]*$/, 'have letters, digits, _ and - alone').meta({
    title: 'Table',
    description: 'Iceberg: the name of the table, which exportd creates.',
    examples: ['events'],
  }),
  catalog_token: secret('catalog_token').meta({
    title: 'Catalog token',
    writeOnly: true,
    description: 'Iceberg: a bearer token of the catalog.',
  }),
  catalog_credential: secret('catalog_credential').meta({
    title: 'Catalog credential',
    writeOnly: true,
    description:
      'Iceberg: client id and client secret, separated by a colon, for which OAuth2 gives a token.',
  }),
  catalog_oauth2_server_uri: text().meta({
    title: 'OAuth2 server URI',
    description: 'Iceberg: where tokens are requested. Empty for /v1/oauth/tokens of the catalog.',
  }),
  catalog_scope: name('catalog_scope', /^[\x20-\x7e]*$/, 'be ASCII characters').meta({
    title: 'OAuth2 scope',
    description: 'Iceberg: what the token is requested for. Empty for catalog.',
  }),
  catalog_signing_name: name('catalog_signing_name', /^[a-z0-9-]*$/, 'be the name of an AWS service').meta({
    title: 'SigV4 service',
    description:
      'Iceberg: the AWS service that requests to the catalog are signed for, with the credentials and the region of the bucket. Empty for other catalogs.',
    examples: ['glue', 's3tables'],
  }),
};

const schema = z.object(catalogFields);
type Fields = Readonly<z.infer<typeof schema>>;

/** The catalog of a config, and the table in it. */
export type IcebergCatalogConfig = Omit<Fields, 'catalog_uri' | 'catalog_namespace' | 'catalog_table'> & {
  readonly catalog_uri: string;
  readonly catalog_namespace: string;
  readonly catalog_table: string;
};

/** Fields that are stored encrypted and never returned. */
export const catalogSecretFields = ['catalog_token', 'catalog_credential'] as const;

const requiredFields = ['catalog_uri', 'catalog_namespace', 'catalog_table'] as const;

/** @throws CommandRejected with the invalid field */
export function checkCatalog(
  config: Fields & { readonly table_format: string | null },
  allowed: AllowedPrivateAddresses,
): void {
  const given = (Object.keys(catalogFields) as (keyof Fields)[]).filter((field) => config[field] ?? null);
  if (config.table_format !== 'iceberg') {
    if (given[0] !== undefined)
      throw rejectField(given[0], `The field '${given[0]}' requires 'table_format' to be 'iceberg'.`);
    return;
  }
  for (const field of requiredFields)
    if (config[field] === null)
      throw new CommandRejected(
        'required',
        `A table of the format 'iceberg' needs a REST catalog: the field '${field}' is missing.`,
        configAttribute(field),
      );
  for (const field of ['catalog_uri', 'catalog_oauth2_server_uri'] as const) {
    const problem = config[field] === null ? null : uriProblem(config[field], allowed);
    if (problem !== null) throw rejectField(field, `The ${field} is not allowed: ${problem}.`);
  }
  const [first, second] = (['catalog_token', 'catalog_credential', 'catalog_signing_name'] as const).filter(
    (field) => config[field] ?? null,
  );
  if (first !== undefined && second !== undefined)
    throw rejectField(second, `The fields '${first}' and '${second}' exclude each other: set one of them.`);
  for (const field of ['catalog_oauth2_server_uri', 'catalog_scope'] as const)
    if (config[field] !== null && config.catalog_credential === undefined)
      throw rejectField(field, `The field '${field}' requires 'catalog_credential'.`);
}

function uriProblem(uri: string, allowed: AllowedPrivateAddresses): string | null {
  const problem = outgoingUrlProblem(uri, allowed);
  if (problem !== null) return problem;
  const { search, hash } = new URL(uri);
  return search === '' && hash === '' ? null : 'it must not contain a query or a fragment';
}

/** A DNS lookup that rejects private addresses when connecting. */
export const catalogLookup = (allowed: AllowedPrivateAddresses): LookupFunction =>
  publicAddressLookup(
    allowed,
    () =>
      new DestinationError(
        'EndpointNotAllowed',
        `The catalog_uri or catalog_oauth2_server_uri is not allowed: ${privateAddressProblem}.`,
        { transient: false },
      ),
  );

/** The catalog of a stored or validated config; null without one. */
export function catalogOf(config: Readonly<Record<string, unknown>>): IcebergCatalogConfig | null {
  if (config.table_format !== 'iceberg') return null;
  const { data } = schema.safeParse(config);
  if (!data) return null;
  const { catalog_uri, catalog_namespace, catalog_table } = data;
  if (catalog_uri === null || catalog_namespace === null || catalog_table === null) return null;
  return { ...data, catalog_uri, catalog_namespace, catalog_table };
}

/** Identifies a table in a catalog; null without one. */
export function catalogTableOf(config: Readonly<Record<string, unknown>>): string | null {
  const catalog = catalogOf(config);
  if (!catalog) return null;
  const { catalog_uri, catalog_warehouse, catalog_namespace, catalog_table } = catalog;
  const names = [catalog_warehouse ?? '', catalog_namespace, catalog_table].map(encodeURIComponent);
  return [catalog_uri.replace(/\/+$/, ''), ...names].join('/');
}

/** Identifies the table of a stored config: its folder, and its name in a catalog; null without a table. */
export function tableLocationOf(config: Readonly<Record<string, unknown>>, model: Model): string | null {
  const folder = tableFolderOf(config, model);
  const inCatalog = catalogTableOf(config);
  return folder === null || inCatalog === null ? folder : `${folder} ${inCatalog}`;
}

/** Where requests with the catalog's secrets are sent. When it changes, they are not reused. */
export const catalogServerOf = (config: Readonly<Record<string, unknown>>): string =>
  JSON.stringify([config.catalog_uri ?? null, config.catalog_oauth2_server_uri ?? null]);
