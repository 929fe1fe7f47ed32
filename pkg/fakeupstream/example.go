package fakeupstream

// ThesisFeed is a project's product data: the thesis's table 1.
const ThesisFeed = `id,title,color,stock,price
2,Test shirt,white,23,
3,T-shirt “Triangle”,blue,34,15.00
4,T-shirt “Triangle”,red,0,15.00
5,T-shirt “Hexagon”,,78,18.00
`

// ThesisJob is a job of high priority for project 12345: the thesis's listing 1.
const ThesisJob = `{
  "session_id": "5531f48d-74f0-4b52-8203-470d5ed8aa90",
  "project_id": 12345,
  "priority": "high",
  "timeouts": {
    "queue_seconds": 15,
    "evaluate_seconds": 120,
    "stream_seconds": 300
  },
  "shared_operators": [
    {
      "name": "Exclude items without valid price",
      "condition": [
        {
          "field": "price",
          "filter": "is_empty",
          "children": [
            {
              "field": "price",
              "filter": "is_less_equal",
              "value": {"type": "static", "value": 0}
            }
          ]
        }
      ],
      "actions": [ {"field": "all", "action": "remove"} ]
    }
  ],
  "operators": [
    {
      "name": "Set availability",
      "condition": [
        {"field": "stock", "filter": "is_greater_than", "value": {"type": "static", "value": 0}}
      ],
      "actions": [ {"field": "availability", "action": "set", "value": "in stock"} ],
      "else_actions": [ {"field": "availability", "action": "set", "value": "out of stock"} ]
    },
    {
      "name": "Add color to product title",
      "condition": [
        {"field": "color", "filter": "is_not_empty"}
      ],
      "actions": [
        {"field": "color", "action": "texttransform", "value": "capitalize"},
        {
          "field": "title",
          "action": "combine",
          "value": [
            {"type": "field", "value": "title"},
            {"type": "static", "value": " "},
            {"type": "field", "value": "color"}
          ]
        }
      ]
    }
  ]
}
`
