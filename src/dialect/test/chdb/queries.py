"""Records in queries.json the rows that ClickHouse (PyPI package chdb) returns for each query of queries/*.txt.

Run `python queries.py` in this folder after adding a query. Tests read the JSON and do not need chdb.
The rows of queries_data.json are inserted into tables with the dialect's columns. Dialect features that ClickHouse lacks
are rewritten as the reference product does: properties, persons and sessions as columns, `=~`, now().
queries_manual.json holds queries with other rows, or that ClickHouse rejects, each with the reason.
"""
import json
import re
from decimal import Decimal
from pathlib import Path

from clickhouse_syntax import open_engine, rewritten, rows_of, settings, version_of

here = Path(__file__).parent
more_settings = {'group_by_use_nulls': 1, 'cast_keep_nullable': 1, 'output_format_json_escape_forward_slashes': 0}
engine = open_engine(more_settings)
data = json.loads((here / 'queries_data.json').read_text())


def value_of(value):
    if value is None:
        return 'NULL'
    if isinstance(value, int):
        return str(value)
    text = json.dumps(value, separators=(',', ':')) if isinstance(value, dict) else value
    if re.fullmatch(r'\d{4}-\d\d-\d\dT[\d:.]+Z', text):
        return f"parseDateTime64BestEffort('{text}', 6)"
    return "'" + text.replace('\\', '\\\\').replace("'", "\\'") + "'"


def make(table, columns, rows):
    declared = ', '.join(f'{name} {kind}' for name, kind in columns.items())
    engine.query(f'CREATE TABLE {table} ({declared}) ENGINE = Memory')
    values = ', '.join('(' + ', '.join(value_of(row[name.strip("`")]) for name in columns) + ')' for row in rows)
    engine.query(f'INSERT INTO {table} VALUES {values}')


persons = data['persons']
by_id = {person['id']: person for person in persons}
person_columns = {
    'person__id': 'Nullable(UUID)',
    'person__properties': 'Nullable(String)',
    'person__created_at': 'Nullable(DateTime64(6))',
}


def person_parts(person, own=None):
    found = person or {}
    return {
        'person__id': found.get('id'),
        'person__properties': own or found.get('properties'),
        'person__created_at': found.get('created_at'),
    }


make('persons', {'id': 'UUID', 'created_at': 'DateTime64(6)', 'properties': 'String'}, persons)
make(
    'person_distinct_ids',
    {'distinct_id': 'String', 'person_id': 'UUID', **person_columns},
    [{**row, **person_parts(by_id[row['person_id']])} for row in data['person_distinct_ids']],
)
group_columns = {
    '`index`': 'Int64',
    'key': 'String',
    'created_at': 'DateTime64(6)',
    'updated_at': 'DateTime64(6)',
    'properties': 'String',
}
make('groups', group_columns, data['groups'])
group_names = [name.strip('`') for name in group_columns]
group_types = range(5)
group_of = {(group['index'], group['key']): group for group in data['groups']}


def group_parts(properties):
    parts = {}
    for index in group_types:
        key = properties.get(f'$group_{index}')
        parts[f'$group_{index}'] = '' if key is None else str(key)
        found = group_of.get((index, parts[f'$group_{index}']), {})
        parts.update({f'group_{index}__{name}': found.get(name) for name in group_names})
    return parts


person_of = {row['distinct_id']: row['person_id'] for row in data['person_distinct_ids']}
events = []
for number, event in enumerate(data['events'], 1):
    person = persons[event['person'] - 1] if event['person'] else None
    events.append({
        'uuid': f'10000000-0000-0000-0000-{number:012}',
        'event': event['event'],
        'distinct_id': event['distinct_id'],
        'properties': event['properties'],
        'timestamp': event['timestamp'],
        'person_id': person and person['id'],
        '$session_id': event['properties'].get('$session_id', ''),
        '$window_id': event['properties'].get('$window_id', ''),
        'pdi__person_id': person_of.get(event['distinct_id']),
        **person_parts(person, event.get('person_properties')),
        **group_parts(event['properties']),
    })
event_columns = {
    'uuid': 'UUID',
    'event': 'String',
    'distinct_id': 'String',
    'properties': 'String',
    'timestamp': 'DateTime64(6)',
    'person_id': 'Nullable(UUID)',
    '`$session_id`': 'String',
    '`$window_id`': 'String',
    'pdi__person_id': 'Nullable(UUID)',
    **person_columns,
    **{f'`$group_{index}`': 'String' for index in group_types},
    **{
        f'group_{index}__{name}': f'Nullable({kind})'
        for index in group_types
        for name, kind in zip(group_names, group_columns.values())
    },
}
make('plain_events', event_columns, events)
url = "nullIf(JSONExtractString(properties, '$current_url'), '')"
engine.query(f"""CREATE VIEW sessions AS SELECT `$session_id` AS session_id,
    argMin(distinct_id, timestamp) AS distinct_id, min(timestamp) AS `$start_timestamp`,
    max(timestamp) AS `$end_timestamp`, toInt64(dateDiff('second', min(timestamp), max(timestamp))) AS `$session_duration`,
    countIf(event = '$pageview') AS `$pageview_count`, argMinIf({url}, timestamp, {url} IS NOT NULL) AS `$entry_current_url`,
    argMaxIf({url}, timestamp, {url} IS NOT NULL) AS `$end_current_url`
    FROM plain_events WHERE `$session_id` != '' GROUP BY `$session_id`""")
engine.query("""CREATE VIEW events AS SELECT e.*, s.`$session_duration` AS `session__$session_duration`,
    s.`$pageview_count` AS `session__$pageview_count`, s.`$entry_current_url` AS `session__$entry_current_url`
    FROM plain_events AS e LEFT JOIN sessions AS s ON s.session_id = e.`$session_id`""")
engine.query('CREATE DATABASE warehouse')
order_columns = {
    'id': 'Nullable(Int64)',
    'distinct_id': 'Nullable(String)',
    'total': 'Nullable(Decimal(18, 2))',
    'paid_at': 'Nullable(DateTime64(6))',
}
make('warehouse.orders', order_columns, data['orders'])
make('plans', {'name': 'Nullable(String)', 'price': 'Nullable(Int64)'}, data['plans'])

typed = {
    'amount': 'toFloat64OrNull({})',
    'seats': 'toFloat64OrNull({})',
    'paid': "transform({}, ['true', 'false'], [true, false], NULL)",
    'trial_ends': 'parseDateTime64BestEffortOrNull({}, 6)',
}
quoted = r"'(?:[^'\\]|\\.|'')*'|`[^`]*`"
path = re.compile(
    quoted + r"|(?<![\w.$])((?:(?!person\.|group_\d\.)[A-Za-z_]\w*\.)?)(?:(person|group_\d)\.)?"
    r"properties((?:\.[\w$]+|\['[^']*'\])+)"
)


def property_of(found):
    """A property as the reference product generates it: raw JSON without surrounding quotes, null if missing."""
    before, joined, keys = found.groups()
    if keys is None:
        return found.group(0)
    column = f"{before}{f'{joined}__' if joined else ''}properties"
    names = [name or key for name, key in re.findall(r"\.([\w$]+)|\['([^']*)'\]", keys)]
    listed = ', '.join(f"'{name}'" for name in names)
    text = f"replaceRegexpAll(nullIf(nullIf(JSONExtractRaw({column}, {listed}), ''), 'null'), '^\"|\"$', '')"
    return typed[names[0]].replace('{}', text) if len(names) == 1 and names[0] in typed else text


def outside_quotes(pattern, replacement, text):
    return re.sub(f'{quoted}|{pattern}', lambda m: m.group(0) if m.group(0)[0] in "'`" else m.expand(replacement), text)


def row_of(found):
    """Expands `person.*` to its columns, with their names."""
    before, row, without = found.groups()
    if row is None:
        return found.group(0)
    names = ['id', 'created_at', 'properties'] if row == 'person' else group_names
    return ', '.join(f'{before}{row}__{name} AS {name}' for name in names if name != without)


operand = r"(?:'[^']*'|[\w.$]+(?:\([^()]*\))?)"
joined = re.compile(rf'{operand}(?: \|\| {operand})+')


def in_clickhouse(query):
    text = joined.sub(lambda found: f"concat({', '.join(found.group(0).split(' || '))})", query)
    text = path.sub(property_of, text)
    text = re.sub(quoted + r'|(?<![\w.])((?:[A-Za-z_]\w*\.)?)(person|group_\d)\.\*(?: EXCLUDE\((\w+)\))?', row_of, text)
    text = re.sub(r"([\w.]+|'[^']*') (=~\*?|!~\*?) '([^']*)'", matched, text)
    for pattern, replacement in [
        (
            r'(?<![\w.])((?:[A-Za-z_]\w*\.)?)(person|group_\d)\.(id|index|key|created_at|updated_at)\b',
            r'\1\2__\3',
        ),
        (r'\bpdi\.person_id', 'pdi__person_id'),
        (r'\bsession\.(\$\w+)', r'`session__\1`'),
        (r'(?<![\w`])(\$\w+)', r'`\1`'),
        (r'\bnow\(\)', "toDateTime64('2026-11-21 07:00:00', 6)"),
        (r'\btoday\(\)', "makeDate(2026, 11, 21)"),
        (r'\byesterday\(\)', "makeDate(2026, 11, 20)"),
    ]:
        text = outside_quotes(pattern, replacement, text)
    text = re.sub(r'PREWHERE (.*) WHERE (.*)', r'WHERE (\1) AND (\2)', text)
    text = re.sub(r'\b([\d.]+) PERCENT\b', lambda found: str(Decimal(found.group(1)) / 100), text)
    return rewritten(text)


def matched(found):
    operand, operator, pattern = found.groups()
    call = f"match({operand}, '{'(?i)' if '*' in operator else ''}{pattern}')"
    return f'NOT {call}' if operator.startswith('!') else call


recorded = []
for file in sorted((here / 'queries').glob('*.txt')):
    for query in file.read_text().splitlines():
        asked = in_clickhouse(query)
        recorded.append({'query': query, **({} if asked == query else {'asked': asked}), **rows_of(engine, asked)})

lines = ',\n'.join(json.dumps(one, ensure_ascii=False) for one in recorded)
head = json.dumps({'clickhouse': version_of(engine), 'settings': {**settings, **more_settings}})[:-1]
(here / 'queries.json').write_text(f'{head}, "cases": [\n{lines}\n]}}\n')
print(len(recorded), 'queries,', sum('error' in one for one in recorded), 'rejected by ClickHouse')
for one in recorded:
    if 'error' in one:
        print(one['query'], '=>', one.get('asked', ''), '::', one['error'][:200])
