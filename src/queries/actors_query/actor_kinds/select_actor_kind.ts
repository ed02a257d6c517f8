import type { DialectReader } from '../../dialect_reader.ts';
import type { ActorKind } from './actor_kind.ts';
import { groupActors } from './groups.ts';
import { personActors } from './persons.ts';

/**
 * Groups if the source returns groups, else persons.
 * @param groupTypeIndex the type of the groups
 * @param attr path of the field that selects groups
 * @throws QueryError if the source has no groups
 */
export const selectActorKind = (
  groupTypeIndex: number | null | undefined,
  reader: DialectReader,
  attr: string,
): ActorKind =>
  groupTypeIndex === null || groupTypeIndex === undefined
    ? personActors
    : groupActors(groupTypeIndex, reader, attr);
