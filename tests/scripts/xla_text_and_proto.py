"""What XLA makes of HLO texts: a JSON line for each that it accepts, with its own text and its proto (base64).

    python xla_text_and_proto.py TEXTS.jsonl FIRST STEP

Some texts crash XLA's parser: the number of the text is on stderr before it is tried, so that whoever runs this can go
on after it.
"""

import base64
import json
import sys

from jaxlib._hlo import hlo_module_from_text

PATH, FIRST, STEP = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

with open(PATH, encoding="utf-8") as lines:
    texts = [json.loads(line)["text"] for line in lines]
for number in range(FIRST, len(texts), STEP):
    print(number, file=sys.stderr, flush=True)
    try:
        module = hlo_module_from_text(texts[number])
    except Exception:
        continue
    proto = base64.b64encode(module.as_serialized_hlo_module_proto()).decode()
    print(json.dumps({"number": number, "text": module.to_string(), "proto": proto}), flush=True)
