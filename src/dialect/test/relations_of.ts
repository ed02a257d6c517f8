import { parse } from 'libpg-query';

/** A relation that a statement reads, and the team it is filtered by. */
interface ReadRelation {
  readonly name: string;
  /** The team in its WHERE, or null. */
  readonly team: string | null;
}

type Tree = Readonly<Record<string, unknown>>;

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null;
const at = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((inner, name) => (isTree(inner) ? inner[name] : undefined), value);

/**
 * The relations that a statement reads, according to PostgreSQL's parser. The team is recognized only if the
 * relation is alone in FROM and the condition is a conjunct of that WHERE.
 */
export async function relationsOf(
  sql: string,
  parameters: readonly string[],
): Promise<readonly ReadRelation[]> {
  const tree: unknown = await parse(sql);
  const found: ReadRelation[] = [];
  const names = new Set<string>();
  const visit = (node: unknown, team: string | null): void => {
    if (!isTree(node)) return;
    if (Array.isArray(node)) {
      for (const item of node) visit(item, null);
      return;
    }
    for (const [kind, inner] of Object.entries(node)) {
      if (kind === 'CommonTableExpr') names.add(String(at(inner, 'ctename')));
      if (kind === 'RangeVar') {
        const schema = at(inner, 'schemaname');
        const name = String(at(inner, 'relname'));
        found.push({ name: typeof schema === 'string' ? `${schema}.${name}` : name, team });
      } else if (kind === 'SelectStmt' && isTree(inner)) visitSelect(inner);
      else visit(inner, null);
    }
  };
  const visitSelect = (select: Tree): void => {
    for (const [key, inner] of Object.entries(select)) {
      const isAlone = key === 'fromClause' && Array.isArray(inner) && inner.length === 1;
      if (isAlone) visit((inner as readonly unknown[])[0], teamOf(select.whereClause, parameters));
      else if (isSetOperand(key) && isTree(inner)) visitSelect(inner);
      else visit(inner, null);
    }
  };
  visit(at(tree, 'stmts'), null);
  return found.filter(({ name }) => !names.has(name));
}

const isSetOperand = (key: string): boolean => key === 'larg' || key === 'rarg';

function teamOf(where: unknown, parameters: readonly string[]): string | null {
  const conjuncts = at(where, 'BoolExpr', 'boolop') === 'AND_EXPR' ? at(where, 'BoolExpr', 'args') : [where];
  if (!Array.isArray(conjuncts)) return null;
  for (const one of conjuncts) {
    const equality = at(one, 'A_Expr');
    const column = at(equality, 'lexpr', 'ColumnRef', 'fields', '0', 'String', 'sval');
    const sign = at(equality, 'name', '0', 'String', 'sval');
    const number = at(equality, 'rexpr', 'TypeCast', 'arg', 'ParamRef', 'number');
    if (column === 'team_id' && sign === '=' && typeof number === 'number')
      return parameters[number - 1] ?? null;
  }
  return null;
}
