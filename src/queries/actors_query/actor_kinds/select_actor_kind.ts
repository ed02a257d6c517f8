import type { DialectReader } from '../../dialect_reader.ts';
import type { ActorKind } from './actor_kind.ts';
import { groupActors } from './groups.ts';
import { personActors } from './persons.ts';

/**
 * Groups where a source tells of them, else persons.
 * @param groupTypeIndex the type of the groups
 * @param attr path of the member that asks for groups
 * @throws QueryError where the source database has no groups
 */
export const selectActorKind = (
  groupTypeIndex: number | null | undefined,
  reader: DialectReader,
  attr: string,
): ActorKind =>
  groupTypeIndex === null || groupTypeIndex === undefined
    ? personActors
    : groupActors(groupTypeIndex, reader, attr);
