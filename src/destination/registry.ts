import { z } from 'zod';
import { CommandRejected } from '../domain/errors.ts';
import type { DestinationType } from './destination_type.ts';
import { s3 } from './s3/index.ts';

/** All destination types. To add one, add a folder next to `s3` and a line here. */
export const destinationTypes: readonly DestinationType[] = [s3];

/**
 * JSON Schemas of the configs that requests may send, by destination type, for the OpenAPI document. Null stands for the
 * default of every optional field.
 */
export const configDocuments: Readonly<Record<string, Readonly<Record<string, unknown>>>> =
  Object.fromEntries(
    destinationTypes.map(({ name, configSchema }) => {
      const schema = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' });
      // The OpenAPI document has a dialect of its own.
      delete schema.$schema;
      const properties = Object.entries(schema.properties ?? {}).map(
        ([field, property]) =>
          [
            field,
            schema.required?.includes(field) ? property : { anyOf: [property, { type: 'null' }] },
          ] as const,
      );
      return [name, { ...schema, properties: Object.fromEntries(properties) }];
    }),
  );

/** Returns the destination type with this name; undefined when there is none. */
export const findDestinationType = (name: string): DestinationType | undefined =>
  destinationTypes.find((type) => type.name === name);

/** Returns the destination type with this name. @throws CommandRejected when there is none */
export function destinationTypeOf(name: string): DestinationType {
  const found = findDestinationType(name);
  if (!found)
    throw new CommandRejected(
      'invalid_input',
      `"${name}" is not a destination type. Valid types: ${destinationTypes.map((type) => type.name).join(', ')}.`,
      'destination__type',
    );
  return found;
}
