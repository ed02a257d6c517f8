import { type Call, type Expression, transform } from '../../ast.ts';
import { DialectError, nearestName, quoteString } from '../../query_text.ts';
import { didYouMean, type Scope } from '../../resolve/scope.ts';
import type { NamedCondition } from '../../resolve/statement.ts';
import type { Value } from '../../resolve/value.ts';
import type { Compiler, ExpressionUse } from '../compiler.ts';

/**
 * Compiles `matchesAction(5)` and `matchesAction('name')`: whether an event matches an action of the project. Names in the
 * condition of an action mean columns of events, whatever the query calls so.
 * @throws DialectError
 */
export function actionValue(compiler: Compiler, call: Call, scope: Scope, use: ExpressionUse): Value {
  const { id, name, condition } = namedAction(call, scope);
  const { start, end } = call;
  const [events, others] = scope.relations.filter(({ isEvents }) => isEvents);
  if (events === undefined || others !== undefined)
    throw scope.statement.error(
      'matchesAction() needs a SELECT that reads the table events once.',
      call,
      'Use it in a subquery, such as uuid IN (SELECT uuid FROM events WHERE matchesAction(5)).',
    );
  const placed = transform(condition(), (node) => ({ ...node, start, end })) as Expression;
  const ofEvents: Scope = {
    ...scope,
    relations: [events],
    usingColumns: new Map(),
    aliases: new Map(),
    arrayJoinColumns: new Map(),
    ctes: null,
    lambdaParameters: new Map(),
  };
  try {
    return compiler.value(placed, ofEvents, use);
  } catch (error) {
    if (!(error instanceof DialectError)) throw error;
    throw scope.statement.error(`Action ${id} (${name}): ${error.summary}`, call, error.suggestion);
  }
}

function namedAction(call: Call, { statement }: Scope): NamedCondition {
  const { actions } = statement.project;
  if (actions === undefined)
    throw statement.error(
      'matchesAction() is not available here.',
      call,
      'Write out the conditions of the action.',
    );
  const [named, another] = call.arguments;
  const isPlain = call.over === null && call.parameters === null && !call.distinct && call.filter === null;
  if ((named?.kind !== 'number' && named?.kind !== 'string') || another !== undefined || !isPlain)
    throw statement.error(
      'matchesAction() requires the id or the name of an action.',
      call,
      "For example matchesAction(5) or matchesAction('Signed up').",
    );
  const found = actions.find(({ id, name }) =>
    named.kind === 'number' ? String(id) === named.text : name === named.value,
  );
  if (found !== undefined) return found;
  const names = actions.map(({ name }) => name);
  throw statement.error(
    `This project has no action ${named.kind === 'number' ? named.text : quoteString(named.value, "'")}.`,
    named,
    named.kind === 'number' ? null : didYouMean(nearestName(named.value, names)),
  );
}
