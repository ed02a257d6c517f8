import type { Expression } from '../../dialect/ast.ts';
import { buildExpression, buildField } from '../../dialect/ast_builders.ts';
import { parseExpressionAt } from '../parse_fragments.ts';
import { QueryError } from '../query_errors.ts';
import type { Breakdown } from './schema.ts';

const unsupported = (attr: string, message: string): QueryError =>
  new QueryError('not_supported', message, { attr });

/** Breakdown fields that are columns of events. */
const metadata: ReadonlySet<string> = new Set([
  ...(['event', 'distinct_id', 'uuid', 'person_id', 'timestamp', 'created_at', 'elements_chain'] as const),
  ...(['$session_id', '$window_id', '$group_0', '$group_1', '$group_2', '$group_3', '$group_4'] as const),
]);

/** The expression of a breakdown over an event. @throws QueryError */
export function breakdownExpression({ type, property, group_type_index, attr }: Breakdown): Expression {
  if (type === 'cohort')
    throw unsupported(
      attr,
      'Breakdowns by cohort are not supported: cohorts are not stored. Break down by an expression (breakdown_type "hogql") with the condition of the cohort.',
    );
  if (typeof property === 'object')
    throw unsupported(attr, 'Use the field breakdowns for several breakdowns.');
  const name = String(property);
  switch (type) {
    case 'event':
      return buildField('properties', name);
    case 'person':
      return buildField('person', 'properties', name);
    case 'session':
      return buildField('session', name);
    case 'group':
      return name === '$group_key'
        ? buildField(`$group_${group_type_index ?? 0}`)
        : buildField(`group_${group_type_index ?? 0}`, 'properties', name);
    case 'event_metadata':
      if (metadata.has(name)) return buildField(name);
      throw new QueryError(
        'invalid_input',
        `Events have no field ${name}. Fields: ${[...metadata].join(', ')}.`,
        { attr },
      );
    case 'hogql':
      return parseExpressionAt(name, attr);
    default:
      throw unsupported(attr, `Breakdowns of type ${type} are not supported.`);
  }
}

/** Normalizes a non-empty URL: trims trailing slashes, `?` and `#`. */
export const normalizedUrl = (text: Expression): Expression =>
  buildExpression("ifNull(nullIf(trimRight({text}, '/?#'), ''), '/')", { text });
