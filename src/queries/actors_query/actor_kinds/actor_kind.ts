import type { Expression } from '../../../dialect/ast.ts';
import type { DialectReader } from '../../dialect_reader.ts';
import type { FilterTarget } from '../../../filters/operand.ts';

/** An actor in results; its kind adds further fields. */
export interface ActorValue {
  readonly id: string;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly distinct_ids?: readonly string[];
}

/** An entry of `select` that shows actors in place of their ids. */
export interface ActorEntry {
  readonly typeName: string;
  /**
   * Formats an actor.
   * @param actor undefined if it is not stored
   * @param distinctIds the distinct ids under which it acted, according to the source
   */
  readonly format: (
    id: string | null,
    actor: ActorValue | undefined,
    distinctIds: readonly string[],
  ) => unknown;
}

/** A kind of actors: persons or groups. */
export interface ActorKind {
  /** Their table, which is not aliased. */
  readonly table: 'persons' | 'groups';
  /** The id column of the table. */
  readonly id: string;
  /** The join condition with `source.actor_id`. */
  readonly isActor: Expression;
  /** Columns that a source must not hide. */
  readonly fields: ReadonlySet<string>;
  /** Prefixes of a column, such as `person` in `person.properties.email`. */
  readonly names: readonly string[];
  /** Entries of `select` that show actors; `orderBy` can name them too. */
  readonly entries: Readonly<Record<string, ActorEntry>>;
  /** Entries of other kinds of actors, with the error message. */
  readonly unsupported: Readonly<Record<string, string>>;
  readonly defaultSelect: readonly string[];
  /** The property to sort by if `orderBy` names an entry. */
  readonly sortedBy: string;
  /** What filters apply to. */
  readonly filtered: (id: Expression) => Pick<FilterTarget, 'scope' | 'groups'>;
  /** The condition that properties or ids match a pattern. */
  readonly search: (pattern: string, id: Expression) => Expression;
  /** Finds stored actors by their ids. */
  readonly find: (reader: DialectReader, ids: readonly string[]) => Promise<ReadonlyMap<string, ActorValue>>;
}
