import { column, type RelationField } from '../relation.ts';
import type { TeamRelation } from '../team_relation.ts';
import type { PropertyTypes } from '../../schema.ts';
import type { ScalarKind } from '../../types.ts';

/** A column of a relation with its name in queries. */
export interface FieldDefinition {
  readonly column: string;
  readonly kind: ScalarKind;
  readonly nullable?: boolean;
  /** Not part of `*`. */
  readonly hidden?: boolean;
}

export type FieldDefinitions = Readonly<Record<string, FieldDefinition>>;

/** The field with a name, read from its relation. */
export function fieldOf(
  relation: Pick<TeamRelation, 'column'>,
  definitions: FieldDefinitions,
  name: string,
  properties?: PropertyTypes,
): RelationField | undefined {
  const definition = Object.hasOwn(definitions, name) ? definitions[name] : undefined;
  if (definition === undefined) return undefined;
  const { kind, nullable = false } = definition;
  return column(
    relation.column(definition.column),
    { kind, nullable },
    kind === 'json' ? properties : undefined,
  );
}

export const starFieldsOf = (definitions: FieldDefinitions): readonly string[] =>
  Object.entries(definitions)
    .filter(([, { hidden }]) => hidden !== true)
    .map(([name]) => name);
