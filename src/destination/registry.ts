import { CommandRejected } from '../domain/errors.ts';
import type { DestinationType } from './destination_type.ts';
import { s3 } from './s3/index.ts';

/** All destination types. To add one, add a folder next to `s3` and a line here. */
const destinationTypes: readonly DestinationType[] = [s3];

/** Returns the destination type with this name. @throws CommandRejected when there is none */
export function destinationTypeOf(name: string): DestinationType {
  const found = destinationTypes.find((type) => type.name === name);
  if (!found)
    throw new CommandRejected(
      'invalid_input',
      `"${name}" is not a destination type. Valid types: ${destinationTypes.map((type) => type.name).join(', ')}.`,
      'destination__type',
    );
  return found;
}
